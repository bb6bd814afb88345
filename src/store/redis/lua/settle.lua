-- Gives slots in flight back: one for each mention of a key.
--
-- KEYS: keys of slots. ARGV[1]: who holds them.
local holder = tonumber(ARGV[1])
for i = 1, #KEYS do
    local s = redis.pcall('GET', KEYS[i])
    if s and type(s) == 'string' and s:byte() == 9 and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local id, count, ends = struct.unpack('>I4I4I7', s, p)
            if id == holder then
                local mine = count > 1 and struct.pack('>I4I4I7', id, count - 1, ends) or ''
                s = s:sub(1, p - 1) .. mine .. s:sub(p + 15)
                if #s == 1 then
                    redis.call('DEL', KEYS[i])
                else
                    redis.call('SET', KEYS[i], s, 'KEEPTTL')
                end
                break
            end
        end
    end
end
