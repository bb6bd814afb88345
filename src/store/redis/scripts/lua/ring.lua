-- Returns the ring `s` as a log, or '' if it is not a ring.
local function ring_as_log(s)
    local tag, latest, room, next, len, _, lost = unpack('>BI7I4I4I4I7I2', s .. ('\0'):rep(29))
    local width = tag == TAG_RING and 6 or 7
    if #s ~= RING_HEAD + room * width or len == 0 or len > room or next >= room then
        return ''
    end
    local entries
    if next >= len then
        entries = s:sub(RING_HEAD + 1 + (next - len) * width, RING_HEAD + next * width)
    else
        entries = s:sub(RING_HEAD + 1 + (next - len + room) * width) .. s:sub(RING_HEAD + 1, RING_HEAD + next * width)
    end
    return pack('>BI7', width == 6 and TAG_LOG or TAG_WIDE_LOG, latest)
        .. entries:sub(1, (len - 1) * width) .. (lost > 0 and pack('>I2', lost) or '')
end
