-- Answers the keys that all gateways sign with, the newest first, and makes a new one where its time has come:
-- whoever comes first decides which.
--
-- KEYS[1]: where they are kept. ARGV: 32 random bytes, after how many us a key gives way to the next, and the time,
-- where it is not that of this server.
local period = ARGV[2] + 0
local kept = call('GET', KEYS[1]) or ''
if #kept % 48 ~= 0 then
    kept = ''
end
local newest = tonumber(kept:sub(1, 16))
if not newest or now - newest >= period then
    kept = (('%016.0f'):format(now) .. ARGV[1] .. kept):sub(1, 48 * MAX_KEYS)
    call('SET', KEYS[1], kept, 'PX', ('%.0f'):format(period / 1000 * MAX_KEYS))
end
return kept
