-- What is left of the windows `s`, each of which `less` makes less: of the window whose record of `size` bytes begins
-- at `p` and which counts up to `count`, it answers what is left, where the next begins, and whether anything counts.
local function windows_without(c, s, moment, size, less)
    local parts, p, counts = {s:sub(1, 2)}, 3, false
    for r = 1, s:byte(2) do
        local count = unpack('>I4', c.argument, 10 + 8 * math.min(r, c.rates))
        local left, next, some = less(s, p, c.cost, moment, count, size)
        parts[r + 1], p, counts = left, next, counts or some
    end
    return counts and table.concat(parts) or ''
end

-- How many bytes the record of a window takes where all take as many; nothing where `s` is another's.
local function record_size(s, tag)
    if #s > 2 and s:byte() == tag and s:byte(2) > 0 then
        return (#s - 2) / s:byte(2)
    end
end
