-- A log of more than 128: a ring that is written in place. 3 (or 4 where entries have 7 bytes, not 6), the latest moment
-- in 7 bytes, how many it has room for, where the next one goes, how many there are, a moment in 7 bytes before which
-- none lies, in 2 bytes how many made way though they still counted, then for the first four rates how many were in the
-- window after the last charge, or 0. Then the entries, modulo 2^48 (2^56), the latest among them.
local function look_long(key, blob, place, cost, n, keep)
    local s = pcall('GETRANGE', key, '0', '903')
    if #s < 45 or s:byte() ~= 3 and s:byte() ~= 4 then
        return look_log(s, blob, place, cost, n, keep)
    end
    local tag, latest, room, next, len, since, lost, h1, h2, h3, h4 = unpack('>BI7I4I4I4I7I2I4I4I4I4', s)
    if room > keep or len > room or len == 0 or next >= room then
        return look_log(pcall('GET', key), blob, place, cost, n, keep)
    end
    local width, format, modulus = 6, '>I6', 281474976710656
    if tag == 4 then
        width, format, modulus = 7, '>I7', 72057594037927936
    end
    -- What is read is kept: neighbours are looked at next.
    local blocks = {}
    local function nth_latest(nth)
        local spot = next - nth
        if spot < 0 then
            spot = spot + room
        end
        local within = spot % 32
        local number = spot - within
        local block = blocks[number]
        if not block then
            local from = 45 + number * width
            block = call('GETRANGE', key, from, from + 32 * width - 1)
            blocks[number] = block
        end
        if #block < (within + 1) * width then
            return 0
        end
        return latest - (latest - unpack(format, block, 1 + within * width)) % modulus
    end
    local at, opens, hints = now, 0, {h1, h2, h3, h4}
    if latest > now then
        at = latest
    end
    for r = 1, n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        length = length * 1000000
        local begin, used, oldest = at - length, 0, latest
        if latest > begin then
            local candidates = (len < count and len or count) + 1
            local step, guess = 1, hints[r] or 0
            used = 1
            if guess == 0 or guess >= candidates then
                guess = candidates - 1
            end
            -- Windows seldom lose many at once, and gain only what was charged.
            if guess > 1 then
                local entry = nth_latest(guess)
                if entry > begin then
                    used, oldest = guess, entry
                    while used + step < candidates do
                        entry = nth_latest(used + step)
                        if entry <= begin then
                            candidates = used + step
                        else
                            used, oldest, step = used + step, entry, step * 2
                        end
                    end
                else
                    candidates = guess
                    while candidates - step > used do
                        entry = nth_latest(candidates - step)
                        if entry > begin then
                            used, oldest = candidates - step, entry
                        else
                            candidates, step = candidates - step, step * 2
                        end
                    end
                end
            end
            while used + 1 < candidates do
                local middle = used + candidates
                middle = (middle - middle % 2) / 2
                local entry = nth_latest(middle)
                if entry > begin then
                    used, oldest = middle, entry
                else
                    candidates = middle
                end
            end
            reply[place + 2] = oldest + length - now
        else
            reply[place + 2] = 0
        end
        reply[place + 1] = count - used
        if used + cost > count then
            local open = cost <= count and nth_latest(count - cost + 1) or at
            if open + length > opens then
                opens = open + length
            end
        end
        place = place + 2
    end
    local ring = {
        room = room, next = next, since = since, width = width, lost = lost, nth_latest = nth_latest, writes = false,
    }
    return opens > at and opens, ring, false, latest, len
end

-- Counts `cost` at one moment, and answers that moment.
local function charge_long(c)
    local ring, latest, len, keep, cost = c.state, c.b, c.d, c.x, c.cost
    if c.a then
        return charge_log(c)
    end
    local room, width, since, nth_latest = ring.room, ring.width, ring.since, ring.nth_latest
    local times, at = cost < keep and cost or keep, now
    if latest > now then
        at = latest
    end
    if width == 6 and at - since >= 281474976710656 then
        since = nth_latest(len)
    end
    if len + times > room and room < keep or width == 6 and at - since >= 281474976710656 then
        -- Written anew: it grows, or its entries do.
        local s = pcall('GET', c.key)
        do
            --@unroll
        end
        c.state, c.a, c.d = s, len, false
        if s == '' then
            c.a, c.b = 0, now
        end
        return charge_log(c)
    end
    local blob, place, hints = c.blob, c.place + 2, {0, 0, 0, 0}
    for r = 1, c.n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        local remaining = reply[place + 1]
        if remaining < cost then
            local oldest = cost < count and nth_latest(count - cost) or at
            reply[place + 1], reply[place + 2] = 0, oldest + length * 1000000 - now
        else
            reply[place + 1] = remaining - cost
            if reply[place + 2] == 0 then
                reply[place + 2] = at + length * 1000000 - now
            end
        end
        hints[r] = count - reply[place + 1]
        place = place + 2
    end
    local lost, surplus = ring.lost, len + times - room
    if surplus > 0 then
        -- Where there is room, nothing that makes way still counts.
        local loses = reply[c.place + 1] >= 0 and nth_latest(len - surplus + 1) > at - c.y * 1000000
        lost = loses and math.min(lost + surplus, 65535) or 0
    end
    local entry = width == 6 and pack('>I6', at % 281474976710656) or pack('>I7', at)
    local next, writes, left = ring.next, {}, times
    while left > 0 do
        local part = left < room - next and left or room - next
        writes[#writes + 1] = 45 + next * width
        writes[#writes + 1] = part == 1 and entry or entry:rep(part)
        next, left = (next + part) % room, left - part
    end
    len = len + times < room and len + times or room
    writes[#writes + 1] = '0'
    writes[#writes + 1] = pack(
        '>BI7I4I4I4I7I2I4I4I4I4',
        width - 3, at, room, next, len, since, lost, hints[1], hints[2], hints[3], hints[4]
    )
    ring.writes = writes
    c.expires = blob:sub(18 + 8 * c.n)
    if at > now then
        c.expires = math.ceil((at - now) / 1000) + c.expires
    end
    return at
end
