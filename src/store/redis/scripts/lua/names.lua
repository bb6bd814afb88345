-- Short names: reading a local is faster than reading a field.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, unpack, pack = redis.call, redis.pcall, struct.unpack, struct.pack
