-- The keys where all limits hold for everybody: how many are of charges, and whether the client is known.
local count, known = #KEYS, false
