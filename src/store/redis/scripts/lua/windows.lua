-- What one rate of several counted, for a window of this length. All windows counted the same requests: the shortest
-- that is long enough knows best, else the longest.
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

-- The first two bytes of a state are its tag and how many rates it counts; `size` is what each takes. Nothing, where
-- it is another's.
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
