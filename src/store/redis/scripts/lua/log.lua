-- A log, short: 1 (or 2 where entries have 7 bytes, not 6), the latest moment in 7 bytes, then all others from the
-- oldest on, modulo 2^48 (2^56), and less than that before the latest. Where some made way for later ones though they
-- still counted, two bytes more say how many; none of them was later than the oldest. x is how many are kept, y the
-- longest window in seconds.

-- When `cost` more have room, if not now; the log, how many there are, the latest, and the oldest if it was looked at.
local function look_log(s, blob, place, cost, n, keep)
    local len, latest, eldest, format, modulus, width = 0, now, false, '>I6', 281474976710656, 6
    -- An error is a table, and empty.
    if s and #s >= 8 then
        local tag, moment = unpack('>BI7', s)
        if tag == 3 or tag == 4 then
            do
                --@unroll
            end
            tag, moment = unpack('>BI7', #s > 0 and s or ('\0'):rep(8))
        end
        if tag == 2 then
            format, modulus, width = '>I7', 72057594037927936, 7
        end
        local rest = (#s - 8) % width
        if (tag == 1 or tag == 2) and (rest == 0 or rest == 2) then
            len, latest = (#s - 8 - rest) / width + 1, moment
        end
    end
    -- Time goes on from the latest moment when a clock steps back.
    local at, opens = now, 0
    if latest > now then
        at = latest
    end
    for p = 18, 10 + 8 * n, 8 do
        local count, length = unpack('>I4I4', blob, p)
        length = length * 1000000
        local begin, used, oldest = at - length, 0, latest
        if len > 0 and latest > begin then
            -- The oldest that the count can see: a busy key holds nothing but late ones.
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
    return opens > at and opens, s, len, latest, eldest
end

-- Counts `cost` at one moment, and answers that moment.
local function charge_log(c)
    local s, len, latest, eldest, keep, cost = c.state, c.a, c.b, c.d, c.x, c.cost
    local blob, place, at = c.blob, c.place + 2, now
    if len > 0 and latest > now then
        at = latest
    end
    local format, modulus, width, lost = '>I6', 281474976710656, 6, 0
    if len > 0 and #s ~= 2 + 6 * len then
        if s:byte() == 2 then
            format, modulus, width = '>I7', 72057594037927936, 7
        end
        if #s > 8 + (len - 1) * width then
            lost = unpack('>I2', s, #s - 1)
            s = s:sub(1, -3)
        end
    end
    for p = 18, 10 + 8 * c.n, 8 do
        local remaining = reply[place + 1]
        if remaining < cost then
            -- Attempts beyond the count push the oldest out of its sight.
            local count, length = unpack('>I4I4', blob, p)
            local oldest, nth = at, count - cost
            if nth == 1 then
                oldest = latest
            elseif nth > 1 then
                oldest = latest - (latest - unpack(format, s, 9 + (len - nth) * width)) % modulus
            end
            reply[place + 1], reply[place + 2] = 0, oldest + length * 1000000 - now
        else
            reply[place + 1] = remaining - cost
            if reply[place + 2] == 0 then
                local _, length = unpack('>I4I4', blob, p)
                reply[place + 2] = at + length * 1000000 - now
            end
        end
        place = place + 2
    end
    c.expires = blob:sub(18 + 8 * c.n)
    if at > now then
        c.expires = math.ceil((at - now) / 1000) + c.expires
    end
    local times, others, tail = cost < keep and cost or keep, '', ''
    local surplus = len + times > keep and len + times - keep or 0
    if surplus > 0 then
        -- Where there is room, nothing that makes way still counts.
        local newest = false
        if reply[c.place + 1] >= 0 then
            newest = latest
            if surplus < len then
                newest = latest - (latest - unpack(format, s, 9 + (surplus - 1) * width)) % modulus
            end
        end
        lost = newest and newest > at - c.y * 1000000 and math.min(lost + surplus, 65535) or 0
    end
    if lost > 0 then
        tail = pack('>I2', lost)
    end
    if surplus < len then
        if not eldest then
            eldest = len > 1 and latest - (latest - unpack(format, s, 9)) % modulus or latest
        end
        if width == 6 and at - eldest >= 281474976710656 then
            local wide = {pack('>BI7', 2, latest)}
            for j = 2, len do
                local entry = unpack(format, s, 9 + (j - 2) * 6)
                wide[j] = pack('>I7', latest - (latest - entry) % modulus)
            end
            s, format, modulus, width = table.concat(wide), '>I7', 72057594037927936, 7
        end
        if times == 1 and (c.kind == 1 or len - surplus < 128) then
            c.value = pack('>BI7', width - 5, at)
                .. s:sub(9 + surplus * width) .. pack(format, latest % modulus) .. tail
            return at
        end
        others = s:sub(9 + surplus * width) .. pack(format, latest % modulus)
    end
    --@long
    c.value = pack('>BI7', width - 5, at) .. others .. pack(format, at % modulus):rep(times - 1) .. tail
    return at
end
