local known = true
while asked > 0 and #ARGV[asked + 1] == 8 do
    known = known and acquainted(KEYS[asked], ARGV[asked + 1])
    asked = asked - 1
end
