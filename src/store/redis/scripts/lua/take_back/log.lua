-- Returns what is left of the log or ring `s` without the charge `c`, if that still counts. Lost entries come back,
-- each counted as late as it may have been.
local function take_back_log(c, s, moment)
    local tag, latest = unpack('>BI7', s .. ('\0'):rep(8))
    local ring
    if tag == TAG_RING or tag == TAG_WIDE_RING then
        ring, s = s, ring_as_log(s)
        tag = tag == TAG_RING and TAG_LOG or TAG_WIDE_LOG
    elseif tag ~= TAG_LOG and tag ~= TAG_WIDE_LOG then
        return nil
    end
    local width, lost = tag == TAG_LOG and 6 or 7, 0
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
    while first > 0 and last - first < c.cost and at(first) == moment do
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
    local _, _, room, _, _, since = unpack(RING_FORMAT, ring)
    return pack(
        RING_FORMAT,
        tag == TAG_LOG and TAG_RING or TAG_WIDE_RING, latest, room, len % room, len, since, lost, 0, 0, 0, 0
    ) .. entries .. ('\0'):rep((room - len) * width)
end
