-- Returns the time in us, and the records of all gateways: the name of each, and the record behind the moment when it
-- was written.
--
-- KEYS[1]: the sorted set of their names. ARGV: how many at most, nothing, and the time in us or empty. The records are
-- in the slot of that set.
local records = {('%016.0f'):format(now)}
for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[1], now, '+inf', 'LIMIT', 0, ARGV[1])) do
    local record = call('GET', KEYS[1] .. ':' .. name)
    if record then
        records[#records + 1] = name
        records[#records + 1] = record
    end
end
return records
