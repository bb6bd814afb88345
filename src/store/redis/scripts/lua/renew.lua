-- Renews the leases of slots in flight. Ended leases are not renewed.
--
-- KEYS: the keys of the slots. ARGV[1]: the number of the holder; ARGV[2]: the length of a lease in us.
local holder, lease = tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 1, #KEYS do
    local s = pcall('GET', KEYS[i])
    if s and type(s) == 'string' and s:byte() == TAG_CONCURRENT and #s % 15 == 1 then
        local last, found = now + lease, nil
        for p = 2, #s, 15 do
            local id, count, ends = unpack('>I4I4I7', s, p)
            if id == holder and ends > now then
                found = p
                ends = math.max(ends, now + lease)
                s = s:sub(1, p - 1) .. pack('>I4I4I7', id, count, ends) .. s:sub(p + 15)
            end
            last = math.max(last, ends)
        end
        if found then
            call('SET', KEYS[i], s, 'PX', math.ceil((last - now) / 1000) + SLACK_MS)
        end
    end
end
