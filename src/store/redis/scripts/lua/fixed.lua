-- Fixed windows: a window opens with the first request while none is open. `past` is for each rate how much of the
-- cost it does not count, if anything.

local function report_fixed(reply, w, place)
    local remaining, reset = w.used < w.count and w.count - w.used or 0, 0
    if remaining < w.count then
        reset = w.opened + w.length - now
    end
    reply[place + 1], reply[place + 2] = remaining, reset
end

local function look_fixed(c)
    local place, past = c.place + 2, c.past
    local s, m = stored(c.key, TAG_FIXED, 15)
    local before, windows, opens = {}, {}, nil
    for j = 1, m do
        local length, opened, used = unpack('>I4I7I4', s, 15 * j - 12)
        before[j] = {length = length * MICROS, opened = opened, used = used}
    end
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', c.argument, 10 + 8 * r)
        length = length * MICROS
        local known = before[r]
        if not known or known.length ~= length then
            known = closest(before, length) or {opened = 0, used = 0}
        end
        local w = {count = count, length = length, opened = known.opened, used = known.used}
        if now >= w.opened + length then
            w.used = 0
        end
        windows[r] = w
        report_fixed(c.reply, w, place)
        if w.used + c.cost - (past and past[r] or 0) > count then
            local open = w.used == 0 and now + length or w.opened + length
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    c.windows = windows
    return opens
end

local function charge_fixed(c)
    local windows, at, expires, parts = c.windows, now, 0, {pack('>BB', TAG_FIXED, c.rates)}
    for r = 1, c.rates do
        local w, units = windows[r], c.cost - (c.past and c.past[r] or 0)
        if w.used == 0 and units > 0 then
            w.opened = now
        end
        w.used = math.min(w.used + units, MOST_COUNTED)
        report_fixed(c.reply, w, c.place + 2 * r)
        parts[r + 1] = pack('>I4I7I4', w.length / MICROS, w.opened, w.used)
        at = math.max(at, w.opened)
        expires = math.max(expires, w.opened + w.length)
    end
    c.value, c.expires = table.concat(parts), kept_until(expires)
    return at
end
