-- Slots in flight. In a charge, `cost` is the limit, `option` the number of the holder, and `span` the lease in
-- seconds. The holder gives `back` so many slots first, and takes so many `more`, if any; `keep(c)` writes what it gave
-- back where it takes none. Leases use the clock of this server, even if a time is given.
time = time or call('TIME')
local server_now = time[1] * MICROS + time[2]

-- Sets in `c` what is to be written of its holders.
local function keep_holders(c)
    local parts, last = {pack('>B', TAG_CONCURRENT)}, server_now
    for j = 1, #c.holders do
        local id, count, ends = c.holders[j][1], c.holders[j][2], c.holders[j][3]
        parts[j + 1] = pack('>I4I4I7', id, count, ends)
        if ends > last then
            last = ends
        end
    end
    c.value, c.expires = table.concat(parts), math.ceil((last - server_now) / 1000) + SLACK_MS
end

local function look_concurrent(c)
    local s = pcall('GET', c.key)
    local holders, taken = {}, 0
    if s and type(s) == 'string' and s:byte() == TAG_CONCURRENT and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local id, count, ends = unpack('>I4I4I7', s, p)
            if id == c.option then
                count = count - (c.back or 0)
            end
            if ends > server_now and count > 0 then
                holders[#holders + 1] = {id, count, ends}
                taken = taken + count
            end
        end
    end
    c.holders, c.taken, c.keep = holders, taken, keep_holders
    return taken >= c.cost and now + MICROS
end

local function charge_concurrent(c)
    local holders, mine, last = c.holders, nil, server_now + c.span * MICROS
    for j = 1, #holders do
        if holders[j][1] == c.option then
            mine = holders[j]
        end
    end
    if not mine then
        mine = {c.option, 0, last}
        holders[#holders + 1] = mine
    end
    mine[2] = mine[2] + 1 + (c.more or 0)
    if last > mine[3] then
        mine[3] = last
    end
    keep_holders(c)
    return now
end
