-- Chooses the state of another rate for a window of this length. All windows counted the same requests: the shortest
-- one that is long enough is the best, else the longest one.
local function closest(windows, length)
    local best
    for j = 1, #windows do
        local this = windows[j]
        local is_long, was_long = this.length >= length, best and best.length >= length
        if not best or is_long and not was_long
            or is_long == was_long and (is_long == (this.length < best.length)) and this.length ~= best.length
        then
            best = this
        end
    end
    return best
end

-- Returns the state of a key and its number of rates, which are its first bytes after the tag; `size` is the length of
-- each rate. Returns '' and 0 if the bytes are not such a state.
local function stored(key, tag, size)
    local s = pcall('GET', key)
    if s and type(s) == 'string' and #s > 2 then
        local found, n = unpack('>BB', s)
        if found == tag and (not size or #s == 2 + n * size) then
            return s, n
        end
    end
    return '', 0
end
