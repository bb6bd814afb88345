-- Subtracts `by` units and `rest` of one more from `units` and `part`; `whole` parts are one unit.
local function lessened(units, part, by, rest, whole)
    units, part = units - by, part - rest
    if part < 0 then
        units, part = units - 1, part + whole
    end
    if units < 0 then
        return 0, 0
    end
    return units, part
end

local function token_without(s, p, cost, moment, count, size)
    local length, at, units, part = unpack('>I4I7I5I7', s, p)
    local over, odd, tail = 0, 0, ''
    if size == 36 then
        over, odd = unpack('>I6I7', s, p + 23)
    end
    local elapsed, whole = at > moment and at - moment or 0, length * MICROS
    -- Without the charge the bucket may have been empty meanwhile, and then less would have leaked.
    if count * elapsed <= cost * whole * 1.000001 then
        local leaked, rest = divided(count, elapsed, whole)
        if rest > 0 then
            leaked, rest = leaked + 1, whole - rest
        end
        if leaked <= cost then
            -- Less would have run over, too.
            local sunk, some = lessened(cost - leaked, rest, over, odd, whole)
            over, odd = lessened(over, odd, cost - leaked, rest, whole)
            units, part = lessened(units, part, sunk, some, whole)
        end
    end
    if size == 36 then
        tail = pack('>I6I7', over, odd)
    end
    return pack('>I4I7I5I7', length, at, units, part) .. tail, p + size, units > 0 or part > 0
end

-- Returns what is left of the buckets `s` without the charge `c`.
local function take_back_token(c, s, moment)
    local size = record_size(s, TAG_TOKEN)
    if size == 23 or size == 36 then
        return windows_without(c, s, moment, size, token_without)
    end
end
