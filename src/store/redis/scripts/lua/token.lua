-- Token buckets, as buckets that leak N units per window W. In a charge, `option` is the burst, or 0.

-- Returns when there is room for `units` more. There is none now.
local function token_opens(w, units)
    if w.burst < units then
        return now + w.length
    end
    local leaks, rest = divided(w.units - w.burst + units, w.length, w.count)
    local open = w.at + leaks + math.ceil((rest + w.part) / w.count)
    return open < LARGEST_EXACT and open or LARGEST_EXACT
end

-- Returns the level now: whole units, and the part of one more.
local function token_level(w)
    local elapsed = now - w.at
    if elapsed <= 0 or w.units == 0 and w.part == 0 then
        return w.units, w.part
    elseif w.count * elapsed > (w.units + 2) * w.length * 1.000001 then
        return 0, 0
    end
    local leaked, rest = divided(w.count, elapsed, w.length)
    local units, part = w.units - leaked, w.part - rest
    if part < 0 then
        units, part = units - 1, part + w.length
    end
    if units < 0 then
        return 0, 0
    end
    return units, part
end

local function report_token(reply, w, units, part, place)
    local remaining, reset = w.burst - units - (part > 0 and 1 or 0), 0
    if remaining < 0 then
        remaining = 0
    end
    if remaining < w.burst then
        reset = token_opens(w, remaining + 1) - now
    end
    reply[place + 1], reply[place + 2] = remaining, reset > 0 and reset or 0
end

-- Converts a level to a window of another length.
local function token_carried(units, part, from, length)
    local carried, rest = divided(length / MICROS, part, from / MICROS)
    carried = rest > 0 and carried + 1 or carried
    if carried >= length then
        return units + 1, carried - length
    end
    return units, carried
end

local function look_token(c)
    local place, cost, burst = c.place + 2, c.cost, c.option
    local s, m = stored(c.key, TAG_TOKEN)
    local before, windows, opens, size = {}, {}, nil, (#s - 2) / m
    if size == 23 or size == 36 then
        for j = 1, m do
            local length, at, units, part = unpack('>I4I7I5I7', s, 3 + size * (j - 1))
            local window = {length = length * MICROS, at = at, units = units, part = part, over = 0, rest = 0}
            if size == 36 then
                window.over, window.rest = unpack('>I6I7', s, 26 + size * (j - 1))
            end
            before[j] = window
        end
    end
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', c.argument, 10 + 8 * r)
        length = length * MICROS
        local known = before[r]
        if not known or known.length ~= length then
            known = closest(before, length) or {length = length, at = 0, units = 0, part = 0, over = 0, rest = 0}
        end
        local w = {
            count = count, burst = burst > 0 and burst or count,
            length = length, at = known.at,
            units = known.units, part = known.part, over = known.over, rest = known.rest,
        }
        if known.length ~= length then
            w.units, w.part = token_carried(w.units, w.part, known.length, length)
            w.over, w.rest = token_carried(w.over, w.rest, known.length, length)
        end
        windows[r] = w
        local units, part = token_level(w)
        report_token(c.reply, w, units, part, place)
        if units + cost > w.burst or units + cost == w.burst and part > 0 then
            local open = token_opens(w, cost)
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    c.windows = windows
    return opens
end

local function charge_token(c)
    local windows, expires, runs_over, parts = c.windows, 0, false, {pack('>BB', TAG_TOKEN, c.rates)}
    for r = 1, c.rates do
        local w = windows[r]
        local units, part = token_level(w)
        if units == 0 and part == 0 then
            w.over, w.rest = 0, 0
        end
        -- A charge without room fills the bucket to its brim; the rest runs over.
        if units >= w.burst then
            w.over = w.over + c.cost
        else
            units = units + c.cost
            if units >= w.burst then
                w.over, w.rest = w.over + units - w.burst, w.rest + part
                if w.rest >= w.length then
                    w.over, w.rest = w.over + 1, w.rest - w.length
                end
                units, part = w.burst, 0
            end
        end
        w.units, w.part, w.at = units, part, math.max(w.at, now)
        report_token(c.reply, w, units, part, c.place + 2 * r)
        parts[r + 1] = pack('>I4I7I5I7', w.length / MICROS, w.at, units, part)
        runs_over = runs_over or w.over > 0 or w.rest > 0
        local leaks, rest = divided(units, w.length, w.count)
        expires = math.max(expires, math.min(w.at + leaks + math.ceil((rest + part) / w.count), LARGEST_EXACT))
    end
    if runs_over then
        for r = 1, c.rates do
            parts[r + 1] = parts[r + 1] .. pack('>I6I7', math.min(windows[r].over, MODULUS - 1), windows[r].rest)
        end
    end
    c.value, c.expires = table.concat(parts), kept_until(expires)
    return now
end
