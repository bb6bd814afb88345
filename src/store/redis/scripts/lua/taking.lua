-- Takes back what was charged, where it still counts.

-- What is left of the log `s`. Where others were lost, they come back: each as late as it may have been.
local function log_without(s, cost, moment)
    local ring
    local tag, latest = unpack('>BI7', s)
    if tag > 2 then
        ring = s
        do
            --@unroll
        end
        tag = tag - 2
    end
    local width, lost = tag + 5, 0
    if #s > 8 and (#s - 8) % width == 2 then
        lost = unpack('>I2', s, #s - 1)
        s = s:sub(1, -3)
    end
    if #s < 8 or (#s - 8) % width ~= 0 then
        return nil
    end
    local format, modulus = '>I' .. width, 2 ^ (8 * width)
    local entries = s:sub(9) .. pack(format, latest % modulus)
    local len = #entries / width
    local last = len
    local function at(j)
        return latest - (latest - unpack(format, entries, 1 + (j - 1) * width)) % modulus
    end
    while last > 0 and at(last) > moment do
        last = last - 1
    end
    local first = last
    while first > 0 and last - first < cost and at(first) == moment do
        first = first - 1
    end
    local back = math.min(last - first, lost)
    if first == last then
        return nil
    elseif first == 0 and last == len and back == 0 then
        return ''
    end
    if last == len then
        latest = at(math.max(first, 1))
    end
    entries = entries:sub(1, width):rep(back) .. entries:sub(1, first * width) .. entries:sub(1 + last * width)
    len, lost = #entries / width, lost - back
    if not ring then
        return pack('>BI7', tag, latest) .. entries:sub(1, -1 - width) .. (lost > 0 and pack('>I2', lost) or '')
    end
    local _, _, room, _, _, since = unpack('>BI7I4I4I4I7', ring)
    return pack('>BI7I4I4I4I7I2I4I4I4I4', tag + 2, latest, room, len % room, len, since, lost, 0, 0, 0, 0)
        .. entries .. ('\0'):rep((room - len) * width)
end

-- What is left of units and a part of one more, that `whole` makes whole.
local function lessened(units, part, by, rest, whole)
    units, part = units - by, part - rest
    if part < 0 then
        units, part = units - 1, part + whole
    end
    if units < 0 then
        return 0, 0
    end
    return units, part
end

-- What is left of one rate's window, whose record begins at `p`; where the next begins; whether anything is.
local function window_without(s, p, tag, cost, moment, count, size)
    if tag == 5 then
        local length, number, current, previous = unpack('>I4I6I4I4', s, p)
        local charged = math.floor(moment / (length * 1000000))
        if charged == number then
            current = math.max(current - cost, 0)
        elseif charged == number - 1 then
            previous = math.max(previous - cost, 0)
        end
        return pack('>I4I6I4I4', length, number, current, previous), p + 18, current + previous > 0
    elseif tag == 7 then
        local length, opened, used = unpack('>I4I7I4', s, p)
        if moment >= opened and moment < opened + length * 1000000 then
            used = math.max(used - cost, 0)
        end
        return pack('>I4I7I4', length, opened, used), p + 15, used > 0
    elseif tag == 8 then
        local length, at, units, part = unpack('>I4I7I5I7', s, p)
        local over, odd, tail = 0, 0, ''
        if size == 36 then
            over, odd = unpack('>I6I7', s, p + 23)
        end
        local elapsed, whole = at > moment and at - moment or 0, length * 1000000
        -- Without it the bucket may have been empty meanwhile, and then less would have leaked.
        if count * elapsed <= cost * whole * 1.000001 then
            local leaked, rest = divided(count, elapsed, whole)
            if rest > 0 then
                leaked, rest = leaked + 1, whole - rest
            end
            if leaked <= cost then
                -- Nor would as much have run over.
                local sunk, some = lessened(cost - leaked, rest, over, odd, whole)
                over, odd = lessened(over, odd, cost - leaked, rest, whole)
                units, part = lessened(units, part, sunk, some, whole)
            end
        end
        if size == 36 then
            tail = pack('>I6I7', over, odd)
        end
        return pack('>I4I7I5I7', length, at, units, part) .. tail, p + size, units > 0 or part > 0
    end
    local length, width, slices, used, lost = unpack('>I4I7I4I6I6', s, p)
    local charged, body = math.floor(moment / width), s:sub(p + 27, p + 26 + 10 * slices)
    for q = 1, #body, 10 do
        local number, count = unpack('>I6I4', body, q)
        if number == charged then
            local taken = math.min(count, cost)
            body = body:sub(1, q - 1) .. pack('>I6I4', number, count - taken) .. body:sub(q + 10)
            -- What was lost comes back, as late as it may have been.
            local oldest, held = unpack('>I6I4', body)
            local back = math.min(lost, taken, 4294967295 - held)
            body = pack('>I6I4', oldest, held + back) .. body:sub(11)
            if count == taken and (q > 1 or back == 0) then
                body = body:sub(1, q - 1) .. body:sub(q + 10)
            end
            used, lost = used - taken + back, lost - back
            break
        end
    end
    return pack('>I4I7I4I6I6', length, width, #body / 10, used, lost) .. body, p + 27 + 10 * slices, #body > 0
end

-- Windows of each tag: whether all bytes are as they should be, and how many one takes where all take as many.
local function is_whole(s, tag)
    local sizes = {[5] = 18, [7] = 15, [8] = 23}
    local n = s:byte(2)
    if not n or n == 0 then
        return false
    elseif tag ~= 6 then
        local size = (#s - 2) / n
        return size == sizes[tag] or tag == 8 and size == 36, size
    end
    local p = 3
    for _ = 1, n do
        if #s < p + 26 then
            return false
        end
        p = p + 27 + 10 * unpack('>I4', s, p + 11)
    end
    return p == #s + 1
end

-- What is left of the values `s`, which the charge says.
local function distinct_without(s, blob, cost, n, moment)
    local left = s
    for j = 1, cost do
        local item, p = blob:sub(10 + 8 * (n + j), 17 + 8 * (n + j)) .. pack('>I7', moment), 2
        while p do
            p = left:find(item, p, true)
            if p and p % 15 == 2 then
                left, p = left:sub(1, p - 1) .. left:sub(p + 15), nil
            else
                p = p and p + 1
            end
        end
    end
    return left ~= s and (#left > 1 and left or '')
end

-- What is left of `s` without a charge; nothing, where that is the same.
local function without(s, blob, kind, cost, n, moment)
    if not s or type(s) ~= 'string' or #s == 0 then
        return nil
    end
    local tag = s:byte()
    if kind <= 2 and tag >= 1 and tag <= 4 and #s >= 8 then
        return log_without(s, cost, moment)
    elseif kind == 8 and tag == 10 and #s % 15 == 1 then
        return distinct_without(s, blob, cost, n, moment)
    elseif kind > 2 and kind < 7 and tag == kind + 2 then
        local whole, size = is_whole(s, tag)
        if not whole then
            return nil
        end
        local parts, p, counts = {s:sub(1, 2)}, 3, false
        for r = 1, s:byte(2) do
            local rate = r < n and r or n
            local some
            parts[r + 1], p, some = window_without(s, p, tag, cost, moment, unpack('>I4', blob, 10 + 8 * rate), size)
            counts = counts or some
        end
        return counts and table.concat(parts) or ''
    end
end
