-- Holds slots in flight for longer. What is held no more stays so.
--
-- KEYS: keys of slots. ARGV[1]: who holds them; ARGV[2]: for how long from now, in us.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local holder, lease = tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 1, #KEYS do
    local s = redis.pcall('GET', KEYS[i])
    if s and type(s) == 'string' and s:byte() == 9 and #s % 15 == 1 then
        local last, found = now + lease, nil
        for p = 2, #s, 15 do
            local id, count, ends = struct.unpack('>I4I4I7', s, p)
            if id == holder and ends > now then
                found = p
                ends = math.max(ends, now + lease)
                s = s:sub(1, p - 1) .. struct.pack('>I4I4I7', id, count, ends) .. s:sub(p + 15)
            end
            last = math.max(last, ends)
        end
        if found then
            redis.call('SET', KEYS[i], s, 'PX', math.ceil((last - now) / 1000) + 1000)
        end
    end
end
