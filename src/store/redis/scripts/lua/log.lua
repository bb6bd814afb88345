-- Sliding logs, written whole. In a charge, `option` is how many entries are kept, and `span` the longest window in
-- seconds. After the rates follows how many ms the log is kept, as text.

-- Looks at the log under the key of `c`, or at these `bytes`. Returns when `cost` more have room, if not now.
local function look_log(c, bytes)
    local s, argument, cost, keep = bytes or pcall('GET', c.key), c.argument, c.cost, c.option
    local reply, place = c.reply, c.place + 2
    local len, latest, eldest, format, modulus, width = 0, now, false, '>I6', MODULUS, 6
    -- An error is an empty table.
    if s and #s >= 8 then
        local tag, moment = unpack('>BI7', s)
        if tag == TAG_RING or tag == TAG_WIDE_RING then
            s = ring_as_log(s)
            tag, moment = unpack('>BI7', #s > 0 and s or ('\0'):rep(8))
        end
        if tag == TAG_WIDE_LOG then
            format, modulus, width = '>I7', WIDE_MODULUS, 7
        end
        local rest = (#s - 8) % width
        if (tag == TAG_LOG or tag == TAG_WIDE_LOG) and (rest == 0 or rest == 2) then
            len, latest = (#s - 8 - rest) / width + 1, moment
        end
    end
    -- If a clock steps back, time goes on from the latest moment.
    local at, opens = now, 0
    if latest > now then
        at = latest
    end
    for p = 18, 10 + 8 * c.rates, 8 do
        local count, length = unpack('>I4I4', argument, p)
        length = length * MICROS
        local begin, used, oldest = at - length, 0, latest
        if len > 0 and latest > begin then
            -- First the oldest entry that the count reaches: in the log of a busy key all are in the window.
            used = len < count and len or count
            if used > 1 then
                local entry = latest - (latest - unpack(format, s, 9 + (len - used) * width)) % modulus
                if used == len or count == keep then
                    eldest = entry
                end
                if entry > begin then
                    oldest = entry
                else
                    local later, candidates = 1, used
                    while later + 1 < candidates do
                        local middle = later + candidates
                        middle = (middle - middle % 2) / 2
                        entry = latest - (latest - unpack(format, s, 9 + (len - middle) * width)) % modulus
                        if entry > begin then
                            later, oldest = middle, entry
                        else
                            candidates = middle
                        end
                    end
                    used = later
                end
            end
            reply[place + 2] = oldest + length - now
        else
            reply[place + 2] = 0
        end
        reply[place + 1] = count - used
        if used + cost > count then
            local open, nth = at, count - cost + 1
            if nth == 1 then
                open = latest
            elseif nth > 1 then
                open = latest - (latest - unpack(format, s, 9 + (len - nth) * width)) % modulus
            end
            if open + length > opens then
                opens = open + length
            end
        end
        place = place + 2
    end
    c.log, c.len, c.latest, c.eldest = s, len, latest, eldest
    return opens > at and opens
end

-- Counts `cost` at one moment, and returns that moment.
local function charge_log(c)
    local s, len, latest, eldest, keep, cost = c.log, c.len, c.latest, c.eldest, c.option, c.cost
    local argument, reply, place, at = c.argument, c.reply, c.place + 2, now
    if len > 0 and latest > now then
        at = latest
    end
    local format, modulus, width, lost = '>I6', MODULUS, 6, 0
    if len > 0 and #s ~= 2 + 6 * len then
        if s:byte() == TAG_WIDE_LOG then
            format, modulus, width = '>I7', WIDE_MODULUS, 7
        end
        if #s > 8 + (len - 1) * width then
            lost = unpack('>I2', s, #s - 1)
            s = s:sub(1, -3)
        end
    end
    for p = 18, 10 + 8 * c.rates, 8 do
        local remaining = reply[place + 1]
        if remaining < cost then
            -- Attempts beyond the count push the oldest entries out of its reach.
            local count, length = unpack('>I4I4', argument, p)
            local oldest, nth = at, count - cost
            if nth == 1 then
                oldest = latest
            elseif nth > 1 then
                oldest = latest - (latest - unpack(format, s, 9 + (len - nth) * width)) % modulus
            end
            reply[place + 1], reply[place + 2] = 0, oldest + length * MICROS - now
        else
            reply[place + 1] = remaining - cost
            if reply[place + 2] == 0 then
                local _, length = unpack('>I4I4', argument, p)
                reply[place + 2] = at + length * MICROS - now
            end
        end
        place = place + 2
    end
    c.expires = argument:sub(18 + 8 * c.rates)
    if at > now then
        c.expires = math.ceil((at - now) / 1000) + c.expires
    end
    local times, others, last, tail = cost < keep and cost or keep, '', '', ''
    local surplus = len + times > keep and len + times - keep or 0
    if surplus > 0 then
        -- If there is room, no entry that is dropped still counts.
        local newest = false
        if reply[c.place + 1] >= 0 then
            newest = latest
            if surplus < len then
                newest = latest - (latest - unpack(format, s, 9 + (surplus - 1) * width)) % modulus
            end
        end
        lost = newest and newest > at - c.span * MICROS and math.min(lost + surplus, 65535) or 0
    end
    if lost > 0 then
        tail = pack('>I2', lost)
    end
    if surplus < len then
        if not eldest then
            eldest = len > 1 and latest - (latest - unpack(format, s, 9)) % modulus or latest
        end
        if width == 6 and at - eldest >= MODULUS then
            local wide = {pack('>BI7', TAG_WIDE_LOG, latest)}
            for j = 2, len do
                local entry = unpack(format, s, 9 + (j - 2) * 6)
                wide[j] = pack('>I7', latest - (latest - entry) % modulus)
            end
            s, format, modulus, width = table.concat(wide), '>I7', WIDE_MODULUS, 7
        end
        others, last = s:sub(9 + surplus * width), pack(format, latest % modulus)
    end
    if times > 1 then
        last = last .. pack(format, at % modulus):rep(times - 1)
    end
    c.value = pack('>BI7', width == 6 and TAG_LOG or TAG_WIDE_LOG, at) .. others .. last .. tail
    return at
end
