-- Slots in flight: 9, then for each process that holds any its number 4, how many 4, and when its lease ends 7. Leases
-- are by the server's clock, whatever time is given. `cost` is the most in flight, x who asks, y the lease in seconds.
real = real or call('TIME')
local real_now = real[1] * 1000000 + real[2]

local function look_concurrent(key, cost)
    local s = pcall('GET', key)
    local holders, taken = {}, 0
    if s and type(s) == 'string' and s:byte() == 9 and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local id, count, ends = unpack('>I4I4I7', s, p)
            if ends > real_now then
                holders[#holders + 1] = {id, count, ends}
                taken = taken + count
            end
        end
    end
    return taken >= cost and now + 1000000, holders
end

local function charge_concurrent(c)
    local holders, mine, last = c.state, nil, real_now + c.y * 1000000
    for j = 1, #holders do
        if holders[j][1] == c.x then
            mine = holders[j]
        end
    end
    if not mine then
        mine = {c.x, 0, last}
        holders[#holders + 1] = mine
    end
    mine[2] = mine[2] + 1
    if last > mine[3] then
        mine[3] = last
    end
    local parts = {'\9'}
    for j = 1, #holders do
        local id, count, ends = holders[j][1], holders[j][2], holders[j][3]
        parts[j + 1] = pack('>I4I4I7', id, count, ends)
        if ends > last then
            last = ends
        end
    end
    c.value, c.expires = table.concat(parts), math.ceil((last - real_now) / 1000) + 1000
    return now
end
