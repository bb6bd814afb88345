-- Answers the keys that all gateways sign with, the newest first, and makes a new one where its time has come: whoever
-- comes first decides which.
--
-- KEYS[1]: where they are kept, 48 bytes each: 16 digits of microseconds since the Unix epoch, 32 random bytes.
-- ARGV: 32 random bytes, after how many microseconds a key gives way to the next, how many are kept, and the time,
-- where it is not that of this server.
local now = tonumber(ARGV[4])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
end
local kept = redis.call('GET', KEYS[1]) or ''
if #kept % 48 ~= 0 then
    kept = ''
end
local newest = tonumber(string.sub(kept, 1, 16))
if not newest or now - newest >= ARGV[2] + 0 then
    kept = string.sub(string.format('%016.0f', now) .. ARGV[1] .. kept, 1, 48 * ARGV[3])
    redis.call('SET', KEYS[1], kept, 'PX', string.format('%.0f', ARGV[2] / 1000 * ARGV[3]))
end
return kept
