-- Whether a client is known under every one of KEYS, whose arguments are 8 bytes each, the client's hash. The argument
-- after them is the time in us, where it is not the server's. Answers 1 or 0.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, unpack = redis.call, redis.pcall, struct.unpack
local now = ARGV[1 + #KEYS]
if now then
    now = now + 0
else
    local real = call('TIME')
    now = real[1] * 1000000 + real[2]
end
--@acquainted
for i = 1, #KEYS do
    if not acquainted(KEYS[i], ARGV[i]) then
        return 0
    end
end
return 1
