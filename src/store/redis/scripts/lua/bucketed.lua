-- A counter for each slice of a window: 6, how many rates, and for each its window in seconds 4, the width of a slice in
-- us 7, how many slices something was counted in 4, how much in all 6, and how much was dropped though it still counted 6,
-- none of it later than the oldest slice; then each of them, the oldest first: which slice since the epoch 6, and what was
-- counted 4. x is how many slices there are, or 0.

-- When there is room for `units` more; there is none now.
local function bucketed_opens(w, units)
    local used = w.used
    for p = w.first, #w.body, 10 do
        local number, count = unpack('>I6I4', w.body, p)
        used = used - count
        if used + units <= w.count then
            return (number + w.slices + 1) * w.width
        end
    end
    return now + w.length
end

local function bucketed_stands(w, place)
    local remaining, reset = w.used < w.count and w.count - w.used or 0, 0
    if remaining < w.count then
        reset = bucketed_opens(w, remaining + 1) - now
    end
    reply[place + 1], reply[place + 2] = remaining, reset > 0 and reset or 0
end

-- Counts `units`, and drops what then says nothing any more.
local function bucketed_counts(w, units, at)
    local number, body = math.floor(at / w.width), w.body
    if w.first <= #body then
        local last, newest = unpack('>I6I4', body, #body - 9)
        number = math.max(last, number)
        if last == number then
            units = math.min(units, 4294967295 - newest)
            body = body:sub(1, -11) .. pack('>I6I4', number, newest + units)
        else
            body = body .. pack('>I6I4', number, units)
        end
    else
        body, w.first = pack('>I6I4', number, units), 1
    end
    w.used, w.body = w.used + units, body
    while true do
        local oldest, count = unpack('>I6I4', body, w.first)
        if oldest + w.slices + 1 <= number then
            -- What was lost before is older.
            w.lost = 0
        elseif w.used - count < w.count then
            return
        else
            w.lost = math.min(w.lost + count, 281474976710655)
        end
        w.first, w.used = w.first + 10, w.used - count
    end
end

local function look_bucketed(key, blob, place, cost, n, asked)
    local s, m = stored(key, 6)
    local windows, rates, opens, p = {}, {}, nil, 3
    for j = 1, m do
        if #s < p + 26 then
            windows = {}
            break
        end
        local length, width, slices, used, lost = unpack('>I4I7I4I6I6', s, p)
        local ends = p + 26 + 10 * slices
        if #s < ends then
            windows = {}
            break
        end
        windows[j] = {length = length * 1000000, width = width, used = used, lost = lost, from = p + 27, ends = ends}
        p = ends + 1
    end
    for r = 1, n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        length = length * 1000000
        local w = {count = count, length = length, slices = asked, width = 0, used = 0, lost = 0, body = '', first = 1}
        if asked > 0 then
            w.width = math.floor((length + asked - 1) / asked)
        elseif length >= 600000000 then
            w.slices, w.width = math.floor((length + 59999999) / 60000000), 60000000
        else
            w.slices, w.width = 10, length / 10
        end
        local known = windows[r]
        if not known or known.length ~= length then
            known = closest(windows, length)
        end
        if known and known.length == length and known.width == w.width then
            w.body, w.used, w.lost = s:sub(known.from, known.ends), known.used, known.lost
        elseif known then
            -- As late as it can have been, but not later than now.
            for q = known.from, known.ends, 10 do
                local number, units = unpack('>I6I4', s, q)
                local begins = number * known.width
                bucketed_counts(w, units, math.max(begins, math.min(now, begins + known.width - 1)))
            end
        end
        -- What is too old is not looked at again.
        local seen, body = math.floor(now / w.width), w.body
        if w.first <= #body then
            local last = unpack('>I6', body, #body - 9)
            if last + w.slices + 1 <= seen then
                w.body, w.used, w.lost, w.first = '', 0, 0, 1
            else
                local oldest, units = unpack('>I6I4', body, w.first)
                while oldest + w.slices + 1 <= seen do
                    w.first, w.used, w.lost = w.first + 10, w.used - units, 0
                    oldest, units = unpack('>I6I4', body, w.first)
                end
            end
        end
        rates[r] = w
        bucketed_stands(w, place)
        if w.used + cost > count then
            local open = bucketed_opens(w, cost)
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    return opens, rates
end

local function charge_bucketed(c)
    local rates, at, expires, parts = c.state, now, 0, {pack('>BB', 6, c.n)}
    for r = 1, c.n do
        local w = rates[r]
        bucketed_counts(w, c.cost, now)
        bucketed_stands(w, c.place + 2 * r)
        local body = w.body:sub(w.first)
        local last = unpack('>I6', body, #body - 9)
        parts[r + 1] = pack('>I4I7I4I6I6', w.length / 1000000, w.width, #body / 10, w.used, w.lost) .. body
        at = math.max(at, last * w.width)
        expires = math.max(expires, (last + w.slices + 1) * w.width)
    end
    c.value, c.expires = table.concat(parts), math.ceil((expires - now) / 1000) + slack
    return at
end
