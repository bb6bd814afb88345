-- Keeps the record of one gateway for the others.
--
-- KEYS[1]: a sorted set with the name of each record and the moment in us when it expires; KEYS[2]: the record. ARGV:
-- the record, its name, for how many ms it is kept, and the time in us, or empty for the time of this server.
local kept = ARGV[3] + 0
call('SET', KEYS[2], ('%016.0f'):format(now) .. ARGV[1], 'PX', kept)
for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)) do
    call('ZREM', KEYS[1], name)
end
call('ZADD', KEYS[1], now + kept * 1000, ARGV[2])
call('PEXPIRE', KEYS[1], kept)
return 1
