local exempt = known and mode >= 16
mode = mode % 16
if exempt then
    reply[size + 1], reply[size + 2] = -2, -1
    size = size + 2
else
