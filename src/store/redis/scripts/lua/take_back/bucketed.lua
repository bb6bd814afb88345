local function bucketed_without(s, p, cost, moment)
    local length, width, slices, used, lost = unpack('>I4I7I4I6I6', s, p)
    local charged, body = math.floor(moment / width), s:sub(p + 27, p + 26 + 10 * slices)
    for q = 1, #body, 10 do
        local number, count = unpack('>I6I4', body, q)
        if number == charged then
            local taken = math.min(count, cost)
            body = body:sub(1, q - 1) .. pack('>I6I4', number, count - taken) .. body:sub(q + 10)
            -- Lost units come back, counted as late as they may have been.
            local oldest, held = unpack('>I6I4', body)
            local back = math.min(lost, taken, MOST_COUNTED - held)
            body = pack('>I6I4', oldest, held + back) .. body:sub(11)
            if count == taken and (q > 1 or back == 0) then
                body = body:sub(1, q - 1) .. body:sub(q + 10)
            end
            used, lost = used - taken + back, lost - back
            break
        end
    end
    return pack('>I4I7I4I6I6', length, width, #body / 10, used, lost) .. body, p + 27 + 10 * slices, #body > 0
end

-- Returns what is left of the windows `s` without the charge `c`.
local function take_back_bucketed(c, s, moment)
    if not record_size(s, TAG_BUCKETED) then
        return nil
    end
    local p = 3
    for _ = 1, s:byte(2) do
        if #s < p + 26 then
            return nil
        end
        p = p + 27 + 10 * unpack('>I4', s, p + 11)
    end
    if p == #s + 1 then
        return windows_without(c, s, moment, nil, bucketed_without)
    end
end
