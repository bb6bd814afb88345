-- Bucketed windows: a counter for each slice of a window. In a charge, `option` is the number of slices, or 0.

-- Returns when there is room for `units` more. There is none now.
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

local function report_bucketed(reply, w, place)
    local remaining, reset = w.used < w.count and w.count - w.used or 0, 0
    if remaining < w.count then
        reset = bucketed_opens(w, remaining + 1) - now
    end
    reply[place + 1], reply[place + 2] = remaining, reset > 0 and reset or 0
end

-- Counts `units`, and drops slices that no longer matter.
local function bucketed_counts(w, units, at)
    local number, body = math.floor(at / w.width), w.body
    if w.first <= #body then
        local last, newest = unpack('>I6I4', body, #body - 9)
        number = math.max(last, number)
        if last == number then
            units = math.min(units, MOST_COUNTED - newest)
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
            -- Everything lost before is older.
            w.lost = 0
        elseif w.used - count < w.count then
            return
        else
            w.lost = math.min(w.lost + count, MODULUS - 1)
        end
        w.first, w.used = w.first + 10, w.used - count
    end
end

local function look_bucketed(c)
    local place, cost, asked = c.place + 2, c.cost, c.option
    local s, m = stored(c.key, TAG_BUCKETED)
    local before, windows, opens, p = {}, {}, nil, 3
    for j = 1, m do
        if #s < p + 26 then
            before = {}
            break
        end
        local length, width, slices, used, lost = unpack('>I4I7I4I6I6', s, p)
        local ends = p + 26 + 10 * slices
        if #s < ends then
            before = {}
            break
        end
        before[j] = {length = length * MICROS, width = width, used = used, lost = lost, from = p + 27, ends = ends}
        p = ends + 1
    end
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', c.argument, 10 + 8 * r)
        length = length * MICROS
        local w = {count = count, length = length, slices = asked, width = 0, used = 0, lost = 0, body = '', first = 1}
        if asked > 0 then
            w.width = math.floor((length + asked - 1) / asked)
        elseif length >= 600000000 then
            w.slices, w.width = math.floor((length + 59999999) / 60000000), 60000000
        else
            w.slices, w.width = 10, length / 10
        end
        local known = before[r]
        if not known or known.length ~= length then
            known = closest(before, length)
        end
        if known and known.length == length and known.width == w.width then
            w.body, w.used, w.lost = s:sub(known.from, known.ends), known.used, known.lost
        elseif known then
            -- As late as it may have been counted, but not later than now.
            for q = known.from, known.ends, 10 do
                local number, units = unpack('>I6I4', s, q)
                local begins = number * known.width
                bucketed_counts(w, units, math.max(begins, math.min(now, begins + known.width - 1)))
            end
        end
        -- Skips slices that are too old.
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
        windows[r] = w
        report_bucketed(c.reply, w, place)
        if w.used + cost > count then
            local open = bucketed_opens(w, cost)
            opens = opens and opens > open and opens or open
        end
        place = place + 2
    end
    c.windows = windows
    return opens
end

local function charge_bucketed(c)
    local windows, at, expires, parts = c.windows, now, 0, {pack('>BB', TAG_BUCKETED, c.rates)}
    for r = 1, c.rates do
        local w = windows[r]
        bucketed_counts(w, c.cost, now)
        report_bucketed(c.reply, w, c.place + 2 * r)
        local body = w.body:sub(w.first)
        local last = unpack('>I6', body, #body - 9)
        parts[r + 1] = pack('>I4I7I4I6I6', w.length / MICROS, w.width, #body / 10, w.used, w.lost) .. body
        at = math.max(at, last * w.width)
        expires = math.max(expires, (last + w.slices + 1) * w.width)
    end
    c.value, c.expires = table.concat(parts), kept_until(expires)
    return at
end
