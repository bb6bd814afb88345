-- Gives back slots of a holder.
settle[SETTLE_RELEASE] = function(key, settlement)
    local s, holder, slots = pcall('GET', key), unpack('>I4I4', settlement, 2)
    if s and type(s) == 'string' and s:byte() == TAG_CONCURRENT and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local id, count, ends = unpack('>I4I4I7', s, p)
            if id == holder then
                s = s:sub(1, p - 1) .. (count > slots and pack('>I4I4I7', id, count - slots, ends) or '')
                    .. s:sub(p + 15)
                leave(key, #s > 1 and s or '')
                return
            end
        end
    end
end
