-- KEYS if some limits do not hold for known clients: first those of charges, then those of subjects. Sets how many are
-- of charges, and whether the client is known under every subject.
local count, known = #KEYS, true
while count > 0 and #ARGV[1 + count] == 8 do
    known = known and is_known_client(KEYS[count], ARGV[1 + count])
    count = count - 1
end
