-- Returns whether the client with this hash is known under this key.
local function is_known_client(key, client)
    local s = pcall('GET', key)
    if s and type(s) == 'string' and s:byte() == TAG_KNOWN_CLIENTS and #s % 15 == 1 then
        for p = 2, #s, 15 do
            if s:sub(p, p + 7) == client then
                return unpack('>I7', s, p + 8) > now
            end
        end
    end
    return false
end
