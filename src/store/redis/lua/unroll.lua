-- The ring `s` as a short log; what is no ring becomes nothing.
local tag, moment, room, next, held = unpack('>BI7I4I4I4', s .. ('\0'):rep(20))
local width, entries = tag + 3, ''
if #s == 43 + room * width and held > 0 and held <= room and next < room then
    if next >= held then
        entries = s:sub(44 + (next - held) * width, 43 + next * width)
    else
        entries = s:sub(44 + (next - held + room) * width) .. s:sub(44, 43 + next * width)
    end
    s = pack('>BI7', tag - 2, moment) .. entries:sub(1, (held - 1) * width)
else
    s = ''
end
