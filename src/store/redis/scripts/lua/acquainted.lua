-- Whether the client, whose hash it is, is known under this key.
local function acquainted(key, client)
    local s = pcall('GET', key)
    if s and type(s) == 'string' and s:byte() == 11 and #s % 15 == 1 then
        for p = 2, #s, 15 do
            if s:sub(p, p + 7) == client then
                return unpack('>I7', s, p + 8) > now
            end
        end
    end
    return false
end
