-- Distinct values. In a charge, `cost` is how many values it has; they follow the rates, 8 bytes each. `option` is how
-- many values are kept, and `span` the longest window in seconds.

-- Returns when the j-th of the values `s` was counted.
local function counted_at(s, j)
    return unpack('>I7', s, 15 * j - 5)
end

-- Returns the first of `len` values that is in the window which began at `begin`.
local function first_within(s, len, begin)
    local before, within = 0, len + 1
    while before + 1 < within do
        local middle = before + within
        middle = (middle - middle % 2) / 2
        if counted_at(s, middle) > begin then
            within = middle
        else
            before = middle
        end
    end
    return within
end

local function report_distinct(c, s, at)
    local reply, len, place = c.reply, (#s - 1) / 15, c.place + 2
    for r = 1, c.rates do
        local count, length = unpack('>I4I4', c.argument, 10 + 8 * r)
        length = length * MICROS
        local used, reset = len + 1 - first_within(s, len, at - length), 0
        if used > count then
            used = count
        end
        if used > 0 then
            reset = counted_at(s, len + 1 - used) + length - now
        end
        reply[place + 1], reply[place + 2] = count - used, reset
        place = place + 2
    end
end

-- Returns when the values have room, if not now. Sets in `c`: `values`, the stored values; `at`, the moment from which
-- time goes on; and `found`, the place of each value of the charge, or false.
local function look_distinct(c)
    local argument, cost, n = c.argument, c.cost, c.rates
    local s = pcall('GET', c.key)
    if not s or type(s) ~= 'string' or s:byte() ~= TAG_DISTINCT or #s % 15 ~= 1 then
        s = pack('>B', TAG_DISTINCT)
    end
    local len, at, opens, fresh, found = (#s - 1) / 15, now, 0, 0, {}
    -- If a clock steps back, time goes on from the latest moment.
    if len > 0 and counted_at(s, len) > now then
        at = counted_at(s, len)
    end
    for j = 1, cost do
        local item, from = argument:sub(10 + 8 * (n + j), 17 + 8 * (n + j)), 2
        found[j] = false
        while from do
            local p = s:find(item, from, true)
            if p and p % 15 == 2 then
                found[j], from = (p + 13) / 15, nil
            else
                from = p and p + 1
            end
        end
        if not found[j] or counted_at(s, found[j]) <= at - c.span * MICROS then
            fresh = fresh + 2 ^ (j - 1)
        end
    end
    report_distinct(c, s, at)
    for r = 1, n do
        local count, length = unpack('>I4I4', argument, 10 + 8 * r)
        length = length * MICROS
        local room, open = count - cost, at
        if room < 0 then
            open = at + length
        else
            -- Counting from the latest: the first value beyond those that have room, without those of the charge.
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
                open = counted_at(s, nth) + length
            end
        end
        if open > opens then
            opens = open
        end
    end
    c.reply[c.place + 3 + 2 * n] = fresh
    c.values, c.at, c.found = s, at, found
    return opens > at and opens
end

-- Counts the values at one moment, and returns that moment.
local function charge_distinct(c)
    local s, at, found, argument, n, cost = c.values, c.at, c.found, c.argument, c.rates, c.cost
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
        parts[#parts + 1] = argument:sub(10 + 8 * (n + j), 17 + 8 * (n + j)) .. pack('>I7', at)
    end
    s = table.concat(parts)
    if #s > 15 * c.option then
        s = s:sub(1 + #s - 15 * c.option)
    end
    c.value = pack('>B', TAG_DISTINCT) .. s
    c.expires = kept_until(at + c.span * MICROS)
    report_distinct(c, c.value, at)
    return at
end
