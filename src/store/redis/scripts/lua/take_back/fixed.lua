local function fixed_without(s, p, cost, moment)
    local length, opened, used = unpack('>I4I7I4', s, p)
    if moment >= opened and moment < opened + length * MICROS then
        used = math.max(used - cost, 0)
    end
    return pack('>I4I7I4', length, opened, used), p + 15, used > 0
end

-- Returns what is left of the windows `s` without the charge `c`.
local function take_back_fixed(c, s, moment)
    if record_size(s, TAG_FIXED) == 15 then
        return windows_without(c, s, moment, 15, fixed_without)
    end
end
