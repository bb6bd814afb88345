-- Sliding counters: the current window and the one before it, aligned since the epoch.

-- Returns when there is room for `units` more. There is none now.
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

local function report_counter(reply, w, place)
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

local function look_counter(c)
    local place, cost = c.place + 2, c.cost
    local s, m = stored(c.key, TAG_COUNTER, 18)
    local before, windows, opens = {}, {}, nil
    for j = 1, m do
        local length, number, current, previous = unpack('>I4I6I4I4', s, 18 * j - 15)
        before[j] = {length = length * MICROS, number = number, current = current, previous = previous}
    end
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', c.argument, 10 + 8 * r)
        length = length * MICROS
        local known = before[r]
        if not known or known.length ~= length then
            known = closest(before, length) or {length = length, number = 0, current = 0, previous = 0}
        end
        local number, current, previous = known.number, known.current, known.previous
        if known.length ~= length then
            -- As late as it can have been, but not later than now.
            local begins = number * known.length
            local late = begins > 0 and math.floor((begins - 1) / length) or 0
            number = math.max(late, math.floor(math.max(begins, math.min(now, begins + known.length - 1)) / length))
            if number == late then
                current, previous = math.min(current + previous, MOST_COUNTED), 0
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
        windows[r] = w
        if report_counter(c.reply, w, place) + cost > count then
            local open = counter_opens(w, cost)
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    c.windows = windows
    return opens
end

local function charge_counter(c)
    local windows, at, expires, parts = c.windows, now, 0, {pack('>BB', TAG_COUNTER, c.rates)}
    for r = 1, c.rates do
        local w = windows[r]
        w.current = math.min(w.current + c.cost, MOST_COUNTED)
        report_counter(c.reply, w, c.place + 2 * r)
        parts[r + 1] = pack('>I4I6I4I4', w.length / MICROS, w.number, w.current, w.previous)
        at = math.max(at, w.begins)
        expires = math.max(expires, w.begins + 2 * w.length)
    end
    c.value, c.expires = table.concat(parts), kept_until(expires)
    return at
end
