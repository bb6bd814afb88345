-- KEYS if all limits hold for every client: all of them are of charges.
local count, known = #KEYS, false
