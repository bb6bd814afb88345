-- Short names: a local of one's own is found faster than a field.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, unpack, pack = redis.call, redis.pcall, struct.unpack, struct.pack
