-- Windows that open with a request: 7, how many rates, and for each its window in seconds 4, when it opened 7, and what
-- was counted in it 4.

local function fixed_stands(w, place)
    local remaining, reset = w.used < w.count and w.count - w.used or 0, 0
    if remaining < w.count then
        reset = w.opened + w.length - now
    end
    reply[place + 1], reply[place + 2] = remaining, reset
end

local function look_fixed(key, blob, place, cost, n)
    local s, m = stored(key, 7, 15)
    local windows, rates, opens = {}, {}, nil
    for j = 1, m do
        local length, opened, used = unpack('>I4I7I4', s, 15 * j - 12)
        windows[j] = {length = length * 1000000, opened = opened, used = used}
    end
    for r = 1, n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        length = length * 1000000
        local known = windows[r]
        if not known or known.length ~= length then
            known = closest(windows, length) or {opened = 0, used = 0}
        end
        local w = {count = count, length = length, opened = known.opened, used = known.used}
        if now >= w.opened + length then
            w.used = 0
        end
        rates[r] = w
        fixed_stands(w, place)
        if w.used + cost > count then
            local open = w.used == 0 and now + length or w.opened + length
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    return opens, rates
end

local function charge_fixed(c)
    local rates, at, expires, parts = c.state, now, 0, {pack('>BB', 7, c.n)}
    for r = 1, c.n do
        local w = rates[r]
        if w.used == 0 then
            w.opened = now
        end
        w.used = math.min(w.used + c.cost, 4294967295)
        fixed_stands(w, c.place + 2 * r)
        parts[r + 1] = pack('>I4I7I4', w.length / 1000000, w.opened, w.used)
        at = math.max(at, w.opened)
        expires = math.max(expires, w.opened + w.length)
    end
    c.value, c.expires = table.concat(parts), math.ceil((expires - now) / 1000) + slack
    return at
end
