-- Makes the client known under this key from now on, and returns whether it was known before. The client that succeeded
-- last comes first.
settle[SETTLE_REMEMBER] = function(key, settlement)
    local client, most, span = settlement:sub(2, 9), unpack('>I4I7', settlement, 10)
    local s, last = pcall('GET', key), now + span
    local parts, was_known = {pack('>B', TAG_KNOWN_CLIENTS), client, pack('>I7', last)}, false
    if s and type(s) == 'string' and s:byte() == TAG_KNOWN_CLIENTS and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local ends = unpack('>I7', s, p + 8)
            if s:sub(p, p + 7) == client then
                was_known = ends > now
            elseif #parts - 2 < most and ends > now then
                parts[#parts + 1] = s:sub(p, p + 14)
                last = ends > last and ends or last
            end
        end
    end
    write('SET', key, table.concat(parts), 'PX', kept_until(last))
    return nil, was_known
end
