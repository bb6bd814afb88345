-- Returns the signing keys of all gateways, the newest first. If a new key is due, it adds the key of the first gateway
-- that asks.
--
-- KEYS[1]: the stored keys. ARGV: 32 random bytes, after how many us the next key is due, and the time in us, if it is
-- not that of this server.
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
