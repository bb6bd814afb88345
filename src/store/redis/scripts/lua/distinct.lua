-- Different values: 10, then for each its hash 8 and when it was counted last 7, in the order of these moments. cost is
-- how many values are asked for, which follow the rates, 8 bytes each; x how many are kept, y the longest window in
-- seconds.

-- When the j-th of the values `s` was counted.
local function counted(s, j)
    return unpack('>I7', s, 15 * j - 5)
end

-- The first of `len` values that is in the window which began at `begin`.
local function first_within(s, len, begin)
    local before, within = 0, len + 1
    while before + 1 < within do
        local middle = before + within
        middle = (middle - middle % 2) / 2
        if counted(s, middle) > begin then
            within = middle
        else
            before = middle
        end
    end
    return within
end

local function distinct_stands(s, at, blob, place, n)
    local len = (#s - 1) / 15
    for r = 1, n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        length = length * 1000000
        local used, reset = len + 1 - first_within(s, len, at - length), 0
        if used > count then
            used = count
        end
        if used > 0 then
            reset = counted(s, len + 1 - used) + length - now
        end
        reply[place + 1], reply[place + 2] = count - used, reset
        place = place + 2
    end
end

-- When the values have room, if not now; those that are there; when time goes on, and where each of the values asked
-- for is, or false.
local function look_distinct(key, blob, place, cost, n, longest)
    local s = pcall('GET', key)
    if not s or type(s) ~= 'string' or s:byte() ~= 10 or #s % 15 ~= 1 then
        s = '\10'
    end
    local len, at, opens, fresh, found = (#s - 1) / 15, now, 0, 0, {}
    -- Time goes on from the latest moment when a clock steps back.
    if len > 0 and counted(s, len) > now then
        at = counted(s, len)
    end
    for j = 1, cost do
        local item, from = blob:sub(10 + 8 * (n + j), 17 + 8 * (n + j)), 2
        found[j] = false
        while from do
            local p = s:find(item, from, true)
            if p and p % 15 == 2 then
                found[j], from = (p + 13) / 15, nil
            else
                from = p and p + 1
            end
        end
        if not found[j] or counted(s, found[j]) <= at - longest * 1000000 then
            fresh = fresh + 2 ^ (j - 1)
        end
    end
    distinct_stands(s, at, blob, place, n)
    for r = 1, n do
        local count, length = unpack('>I4I4', blob, 10 + 8 * r)
        length = length * 1000000
        local room, open = count - cost, at
        if room < 0 then
            open = at + length
        else
            -- The first value beyond those that have room, the latest first, not counting those that are asked for.
            local nth, before = len - room, nil
            while nth ~= before do
                before, nth = nth, len - room
                for j = 1, cost do
                    if found[j] and found[j] >= before then
                        nth = nth - 1
                    end
                end
            end
            if nth > 0 then
                open = counted(s, nth) + length
            end
        end
        if open > opens then
            opens = open
        end
    end
    reply[place + 2 * n + 1] = fresh
    return opens > at and opens, s, at, found
end

-- Counts the values at one moment, and answers that moment.
local function charge_distinct(c)
    local s, at, found, blob, n, cost = c.state, c.a, c.b, c.blob, c.n, c.cost
    local gone = {}
    for j = 1, cost do
        if found[j] then
            gone[#gone + 1] = found[j]
        end
    end
    table.sort(gone)
    local parts, from = {}, 1
    for j = 1, #gone do
        parts[j] = s:sub(15 * from - 13, 15 * gone[j] - 14)
        from = gone[j] + 1
    end
    parts[#parts + 1] = s:sub(15 * from - 13)
    for j = 1, cost do
        parts[#parts + 1] = blob:sub(10 + 8 * (n + j), 17 + 8 * (n + j)) .. pack('>I7', at)
    end
    s = table.concat(parts)
    if #s > 15 * c.x then
        s = s:sub(1 + #s - 15 * c.x)
    end
    c.value = '\10' .. s
    c.expires = math.ceil((at - now) / 1000) + c.y * 1000 + slack
    distinct_stands(c.value, at, blob, c.place + 2, n)
    return at
end
