-- What settles each kind of settlement: `settle[kind](key, settlement)` answers what every gateway is told, if
-- anything.
local settle = {nil, nil, nil, nil, nil}

-- The error of the last write that failed.
local failed

-- Runs a command. What the server does not write, it does not write: the others are settled all the same.
local function write(...)
    local done = pcall(...)
    if type(done) == 'table' and done.err then
        failed = done
    end
    return not failed
end

-- Writes what is left of a state, which ends when it did.
local function leave(key, value)
    if value == '' then
        return write('DEL', key)
    end
    return write('SET', key, value, 'KEEPTTL')
end
