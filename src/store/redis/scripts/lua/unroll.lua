-- The ring `s` as a short log; what is no ring becomes nothing.
local tag, moment, room, next, held, _, lost = unpack('>BI7I4I4I4I7I2', s .. ('\0'):rep(29))
local width, entries = tag + 3, ''
if #s == 45 + room * width and held > 0 and held <= room and next < room then
    if next >= held then
        entries = s:sub(46 + (next - held) * width, 45 + next * width)
    else
        entries = s:sub(46 + (next - held + room) * width) .. s:sub(46, 45 + next * width)
    end
    s = pack('>BI7', tag - 2, moment) .. entries:sub(1, (held - 1) * width) .. (lost > 0 and pack('>I2', lost) or '')
else
    s = ''
end
