-- Returns what is left of the windows `s` without the charge `c`. `less` does that for the window whose record of
-- `size` bytes begins at `p` and which counts up to `count`: it returns what is left of it, where the next record
-- begins, and whether the window still counts anything.
local function windows_without(c, s, moment, size, less)
    local parts, p, counts = {s:sub(1, 2)}, 3, false
    for r = 1, s:byte(2) do
        local count = unpack('>I4', c.argument, 10 + 8 * math.min(r, c.rates))
        local left, next, some = less(s, p, c.cost, moment, count, size)
        parts[r + 1], p, counts = left, next, counts or some
    end
    return counts and table.concat(parts) or ''
end

-- Returns the length of the record of each window if all have the same; nil if `s` is not such a state.
local function record_size(s, tag)
    if #s > 2 and s:byte() == tag and s:byte(2) > 0 then
        return (#s - 2) / s:byte(2)
    end
end
