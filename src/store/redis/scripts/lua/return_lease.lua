-- Ends a lease: what was spent of it counts from now on, and the rest is given back. A lease that has ended before is
-- left alone.
--
-- KEYS[1]: the key; KEYS[2]: its leases. ARGV[1]: the charge of one request. ARGV[2]: the id of the lease 8 | spent 4.
-- ARGV[3]: the channel on which it publishes that the key has room again. ARGV[4]: the time in us, if it is not that
-- of this server. Answers 1, or 0 if there is no such lease.
local kind, mode, _, cost, rates, option, span = unpack('>BBI2I4BI4I4', ARGV[1])
local c = {
    key = KEYS[1], argument = ARGV[1], kind = kind, mode = mode, rates = rates, option = option, span = span,
    reply = {}, place = 1,
}
local ended, spent = unpack('>c8I4', ARGV[2])
local l = {name = KEYS[2], ended = ended, spent = spent}
if kind == KIND_FIXED then
    c.cost = cost
    look(c)
    l.windows = c.windows
end
read_leases(c, l)
if not l.given then
    return 0
end
local counts = l.spent
l.spent = l.given
set_units(c, l, cost, true)
local had_no_room = look(c)
l.spent = counts
set_units(c, l, cost, true)
local has_none = look(c)
if l.spent + l.late_units > 0 then
    -- There is room for them: they were leased.
    set_units(c, l, 0, false)
    c.reply[c.place + 1] = ANSWER_NONE
    charge(c)
    write_charge(c)
end
write_leases(c, l)
if had_no_room and not has_none then
    pcall('PUBLISH', ARGV[3], ('@%.0f +'):format(now) .. c.key:sub(-KEY_DIGITS))
end
return 1
