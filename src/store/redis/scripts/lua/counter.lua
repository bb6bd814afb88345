-- Two counters a rate: 5, how many rates, and for each its window in seconds 4, which aligned window since the epoch 6,
-- what was counted in it 4, and in the one before 4.

-- When there is room for `units` more; there is none now.
local function counter_opens(w, units)
    local counted, room, ends = w.previous, w.count - units, w.begins
    if room < 0 then
        return w.begins + 2 * w.length
    elseif room >= w.current then
        room = room - w.current
    else
        counted, ends = w.current, w.begins + w.length
    end
    if counted <= room then
        return ends
    end
    -- floor(counted * (W - elapsed) / W) <= room holds when W - elapsed < (room + 1) * W / counted.
    local fades, rest = divided(room + 1, w.length, counted)
    return ends + (w.length + 1 - (rest > 0 and fades + 1 or fades))
end

local function counter_stands(w, place)
    local faded = 0
    if w.previous > 0 then
        faded = divided(w.previous, w.length - w.elapsed, w.length)
    end
    local used, reset = w.current + faded, 0
    local remaining = used < w.count and w.count - used or 0
    if remaining < w.count then
        reset = counter_opens(w, remaining + 1) - now
    end
    reply[place + 1], reply[place + 2] = remaining, reset > 0 and reset or 0
    return used
end

local function look_counter(key, blob, place, cost, n)
    local s, m = stored(key, 5, 18)
    local windows, rates, opens = {}, {}, nil
    for j = 1, m do
        local length, number, current, previous = unpack('>I4I6I4I4', s, 18 * j - 15)
        windows[j] = {length = length * 1000000, number = number, current = current, previous = previous}
    end
    for r = 1, n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        length = length * 1000000
        local known = windows[r]
        if not known or known.length ~= length then
            known = closest(windows, length) or {length = length, number = 0, current = 0, previous = 0}
        end
        local number, current, previous = known.number, known.current, known.previous
        if known.length ~= length then
            -- As late as it can have been, but not later than now.
            local begins = number * known.length
            local late = begins > 0 and math.floor((begins - 1) / length) or 0
            number = math.max(late, math.floor(math.max(begins, math.min(now, begins + known.length - 1)) / length))
            if number == late then
                current, previous = math.min(current + previous, 4294967295), 0
            elseif number > late + 1 then
                previous = 0
            end
        end
        -- A clock that steps back does not leave the window: it stands at its beginning.
        local seen = math.floor(now / length)
        if seen == number + 1 then
            number, current, previous = seen, 0, current
        elseif seen > number then
            number, current, previous = seen, 0, 0
        end
        local begins = number * length
        local w = {
            count = count, length = length, number = number, begins = begins, current = current, previous = previous,
            elapsed = now > begins and now - begins or 0,
        }
        rates[r] = w
        if counter_stands(w, place) + cost > count then
            local open = counter_opens(w, cost)
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    return opens, rates
end

local function charge_counter(c)
    local rates, at, expires, parts = c.state, now, 0, {pack('>BB', 5, c.n)}
    for r = 1, c.n do
        local w = rates[r]
        w.current = math.min(w.current + c.cost, 4294967295)
        counter_stands(w, c.place + 2 * r)
        parts[r + 1] = pack('>I4I6I4I4', w.length / 1000000, w.number, w.current, w.previous)
        at = math.max(at, w.begins)
        expires = math.max(expires, w.begins + 2 * w.length)
    end
    c.value, c.expires = table.concat(parts), math.ceil((expires - now) / 1000) + slack
    return at
end
