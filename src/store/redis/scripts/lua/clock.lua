-- The time of this call in us since the epoch: by the clock of this server, or as given by a test.
local given, now, time = ARGV[2 + #KEYS]
if given and given ~= '' then
    now = given + 0
else
    time = call('TIME')
    now = time[1] * MICROS + time[2]
end
