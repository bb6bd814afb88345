else
    local blob = settled:sub(what == 2 and 10 or 2)
    local kind, mode, limit, cost, n, x, y = unpack('>BBI2I4BI4I4', blob)
    local opens, state, a, b, d
    --@look
    reply[size + 1] = opens and 0 or -1
    if what == 2 then
        if kind == 8 then
            -- A new value had no room, whatever these had.
            opens = false
            for r = 1, n do
                opens = opens or reply[size + 1 + 2 * r] == 0
            end
        end
        local left = without(pcall('GET', key), blob, kind, cost, n, unpack('>I8', settled, 2))
        if left and keep(key, left) and opens then
            told[#told + 1] = i
            words[#words + 1] = '+' .. key:sub(-32)
        end
    else
        local at
        local c = {
            key = key, blob = blob, kind = kind, mode = mode, limit = limit, cost = cost, n = n, x = x, y = y,
            place = size, state = state, a = a, b = b, d = d, value = false, expires = false,
        }
        --@charge
        local value = c.value
        if value then
            write('SET', key, value, 'PX', c.expires)
        elseif c.expires then
            --@write
        end
    end
