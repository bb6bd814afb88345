-- The function for each kind of settlement: `settle[kind](key, settlement)` returns what is published to every gateway,
-- if anything, and whether a client was known before it is remembered.
local settle = {nil, nil, nil, nil, nil}

-- The error of the last write that failed.
local failed

-- Runs a command. If this server refuses it, the other settlements still follow.
local function write(...)
    local done = pcall(...)
    if type(done) == 'table' and done.err then
        failed = done
    end
    return not failed
end

-- Writes what is left of a state, and keeps its expiry.
local function leave(key, value)
    if value == '' then
        return write('DEL', key)
    end
    return write('SET', key, value, 'KEEPTTL')
end
