local total = len - surplus + times
if surplus >= len then
    total = times
end
if total > 128 and c.kind == 2 then
    local entries = others .. pack(format, at % modulus):rep(times)
    local room = 2 * total < keep and 2 * total or keep
    local since = at - (at - unpack(format, entries)) % modulus
    c.value = pack('>BI7I4I4I4I7I2I4I4I4I4', width - 3, at, room, total % room, total, since, lost, 0, 0, 0, 0)
        .. entries .. ('\0'):rep((room - total) * width)
    return at
end
