-- How `luacheck` reads the scripts that run in Redis. A script is several files one after the other, so that a file may
-- name what those before it define, and what Rust does: see `src/store/redis/scripts/constants.rs`.
stds.redis = {
    read_globals = {"KEYS", "ARGV", redis = {fields = {"call", "pcall"}}, struct = {fields = {"pack", "unpack"}}},
}
std = "lua51+redis"

local constants = {
    "KIND_LOG", "KIND_LONG", "KIND_COUNTER", "KIND_BUCKETED", "KIND_FIXED", "KIND_TOKEN", "KIND_CONCURRENT",
    "KIND_DISTINCT",
    "TAG_LOG", "TAG_WIDE_LOG", "TAG_RING", "TAG_WIDE_RING", "TAG_COUNTER", "TAG_BUCKETED", "TAG_FIXED", "TAG_TOKEN",
    "TAG_CONCURRENT", "TAG_DISTINCT", "TAG_KNOWN_CLIENTS",
    "PURPOSE_DECIDE", "PURPOSE_DENY", "PURPOSE_LOOK",
    "MODE_ATTEMPTS", "MODE_SHADOW", "MODE_DELAY", "MODE_WITH_ROOM", "MODE_FREE", "MODE_UNLESS_KNOWN",
    "SETTLE_RELEASE", "SETTLE_TAKE_BACK", "SETTLE_CHARGE", "SETTLE_RESET", "SETTLE_REMEMBER",
    "ANSWER_NONE", "ANSWER_EXEMPT",
    "LONGEST_LOG", "KEY_DIGITS", "MAX_KEYS", "MOST_BANS", "SESSIONS_OF_PAGE", "SLACK_MS", "GIVEN_SLACK_MS",
    "TENTH", "FORGOTTEN_MS", "MOST_FORGOTTEN",
    "MICROS", "MODULUS", "WIDE_MODULUS", "RING_FORMAT", "RING_HEAD", "MOST_COUNTED", "LARGEST_EXACT",
    "LEASE_RECORD", "LEASE_GRACE", "LEASED_PACE", "LEASED_PART", "MOST_LEASES",
    "PARTS_WHOLE", "PARTS_RESERVED", "PARTS_KEPT_MS", "PARTS_QUIET", "PARTS_SILENT", "MOST_NEIGHBOURS",
}

-- What one file defines for others.
local shared = {
    "KEYS", "ARGV", "call", "pcall", "unpack", "pack",
    "given", "now", "time",
    "kept_until", "ring_as_log", "divided", "closest", "stored", "is_known_client", "count", "known",
    "look", "charge", "take_back", "windows_without", "record_size",
    "settle", "write", "leave", "failed",
    "read_leases", "write_leases", "set_units", "write_charge", "withhold", "reply", "charges", "asked", "size",
}
for _, kind in ipairs {"log", "long", "counter", "bucketed", "fixed", "token", "concurrent", "distinct"} do
    for _, what in ipairs {"look_", "charge_", "take_back_"} do
        shared[#shared + 1] = what .. kind
    end
end

read_globals, globals, ignore = constants, shared, {}
for _, name in ipairs(shared) do
    -- Neither unused, nor assigned for nothing.
    ignore[#ignore + 1] = "[23]../^" .. name .. "$"
end
