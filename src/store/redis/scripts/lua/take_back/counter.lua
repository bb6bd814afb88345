local function counter_without(s, p, cost, moment)
    local length, number, current, previous = unpack('>I4I6I4I4', s, p)
    local charged = math.floor(moment / (length * MICROS))
    if charged == number then
        current = math.max(current - cost, 0)
    elseif charged == number - 1 then
        previous = math.max(previous - cost, 0)
    end
    return pack('>I4I6I4I4', length, number, current, previous), p + 18, current + previous > 0
end

-- Returns what is left of the windows `s` without the charge `c`.
local function take_back_counter(c, s, moment)
    if record_size(s, TAG_COUNTER) == 18 then
        return windows_without(c, s, moment, 18, counter_without)
    end
end
