-- Logs that may become too long to be written whole: a log up to LONGEST_LOG entries, then a ring that is written in
-- place. The charge is that of a log.

-- Counts in a log. A log that becomes too long to be written whole becomes a ring for twice as many entries.
local function charge_growing(c)
    local at, s, keep = charge_log(c), c.value, c.option
    if #s < 8 + LONGEST_LOG * 6 then
        return at
    end
    local tag, width, lost = TAG_RING, 6, 0
    if s:byte() == TAG_WIDE_LOG then
        tag, width = TAG_WIDE_RING, 7
    end
    -- The latest entry stands before the others.
    if #s - 8 < LONGEST_LOG * width then
        return at
    end
    if (#s - 8) % width == 2 then
        lost = unpack('>I2', s, #s - 1)
        s = s:sub(1, -3)
    end
    local format, modulus = '>I' .. width, 2 ^ (8 * width)
    local entries = s:sub(9) .. pack(format, at % modulus)
    local len = #entries / width
    local room = 2 * len < keep and 2 * len or keep
    local since = at - (at - unpack(format, entries)) % modulus
    c.value = pack(RING_FORMAT, tag, at, room, len % room, len, since, lost, 0, 0, 0, 0)
        .. entries .. ('\0'):rep((room - len) * width)
    return at
end

-- Returns when `cost` more have room, if not now.
local function look_long(c)
    local key, argument, cost, reply, place = c.key, c.argument, c.cost, c.reply, c.place + 2
    -- The longest log fits into these bytes, and so does the head of a ring.
    local s = pcall('GETRANGE', key, '0', '903')
    if #s < RING_HEAD or s:byte() ~= TAG_RING and s:byte() ~= TAG_WIDE_RING then
        return look_log(c, s)
    end
    local tag, latest, room, next, len, since, lost, h1, h2, h3, h4 = unpack(RING_FORMAT, s)
    if room > c.option or len > room or len == 0 or next >= room then
        return look_log(c)
    end
    local width, format, modulus = 6, '>I6', MODULUS
    if tag == TAG_WIDE_RING then
        width, format, modulus = 7, '>I7', WIDE_MODULUS
    end
    -- Blocks that were read are kept, because the next look is at a neighbour.
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
            local from = RING_HEAD + number * width
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
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', argument, 10 + 8 * r)
        length = length * MICROS
        local begin, used, oldest = at - length, 0, latest
        if latest > begin then
            local candidates = (len < count and len or count) + 1
            local step, guess = 1, hints[r] or 0
            used = 1
            if guess == 0 or guess >= candidates then
                guess = candidates - 1
            end
            -- Starts from the last result: few entries leave a window at once.
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
    c.ring = {room = room, next = next, since = since, width = width, lost = lost, nth_latest = nth_latest}
    c.len, c.latest = len, latest
    return opens > at and opens
end

-- Counts `cost` at one moment, and returns that moment.
local function charge_long(c)
    local ring, latest, len, keep, cost = c.ring, c.latest, c.len, c.option, c.cost
    if not ring then
        return charge_growing(c)
    end
    local room, width, since, nth_latest = ring.room, ring.width, ring.since, ring.nth_latest
    local times, at = cost < keep and cost or keep, now
    if latest > now then
        at = latest
    end
    if width == 6 and at - since >= MODULUS then
        since = nth_latest(len)
    end
    if len + times > room and room < keep or width == 6 and at - since >= MODULUS then
        -- Writes the ring anew: it grows, or its entries get wider.
        c.log = ring_as_log(pcall('GET', c.key))
        if c.log == '' then
            c.len, c.latest = 0, now
        end
        return charge_growing(c)
    end
    local argument, reply, place, hints = c.argument, c.reply, c.place + 2, {0, 0, 0, 0}
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', argument, 10 + 8 * r)
        local remaining = reply[place + 1]
        if remaining < cost then
            local oldest = cost < count and nth_latest(count - cost) or at
            reply[place + 1], reply[place + 2] = 0, oldest + length * MICROS - now
        else
            reply[place + 1] = remaining - cost
            if reply[place + 2] == 0 then
                reply[place + 2] = at + length * MICROS - now
            end
        end
        hints[r] = count - reply[place + 1]
        place = place + 2
    end
    local lost, surplus = ring.lost, len + times - room
    if surplus > 0 then
        -- If there is room, no entry that is dropped still counts.
        local loses = reply[c.place + 1] >= 0 and nth_latest(len - surplus + 1) > at - c.span * MICROS
        lost = loses and math.min(lost + surplus, 65535) or 0
    end
    local entry = width == 6 and pack('>I6', at % MODULUS) or pack('>I7', at)
    local next, writes, left = ring.next, {}, times
    while left > 0 do
        local part = left < room - next and left or room - next
        writes[#writes + 1] = RING_HEAD + next * width
        writes[#writes + 1] = part == 1 and entry or entry:rep(part)
        next, left = (next + part) % room, left - part
    end
    len = len + times < room and len + times or room
    writes[#writes + 1] = '0'
    writes[#writes + 1] = pack(
        RING_FORMAT,
        width == 6 and TAG_RING or TAG_WIDE_RING, at, room, next, len, since, lost,
        hints[1], hints[2], hints[3], hints[4]
    )
    c.writes, c.expires = writes, argument:sub(18 + 8 * c.rates)
    if at > now then
        c.expires = math.ceil((at - now) / 1000) + c.expires
    end
    return at
end
