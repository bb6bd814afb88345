-- Notes which part of every limit a gateway holds, and grants it what is free, up to what would be fair.
--
-- KEYS[1]: a hash: for each gateway `units moment number`, `called` the moment of the last call, `quiet` until when nothing
-- is granted. ARGV[1]: the gateway, the number of its call, and the units that it holds, or -1 if it leaves. ARGV[2]: gateways
-- that are over. ARGV[3]: the time in us, if it is not that of this server.
-- Answers what the gateway holds from now on, what would be fair, how many gateways there are, and those on its machine
-- that were not heard of lately.
local gateway, number, held = ARGV[1]:match('^(%S+) (%d+) (%-?%d+)$')
number, held = number + 0, held + 0
local over, silent = {}, {}
for name in ARGV[2]:gmatch('%S+') do
    over[name] = true
end
local machine = gateway:match('^[^-]*-')

local called, quiet
local own, own_number, others, reserved, live = 0, 0, 0, 0, 1
local entries = call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
    local name, value = entries[i], entries[i + 1]
    if name == 'called' then
        called = value + 0
    elseif name == 'quiet' then
        quiet = value + 0
    else
        local units, moment, last = value:match('^(%d+) (%d+) (%d+)$')
        units, moment = units + 0, moment + 0
        local is_silent = now - moment > PARTS_SILENT
        if name == gateway then
            own, own_number = units, last + 0
        elseif is_silent and (over[name] or units == 0 or now - moment > PARTS_RESERVED) then
            call('HDEL', KEYS[1], name)
        else
            others = others + units
            if not is_silent then
                live = live + 1
            else
                reserved = reserved + units
                if name:sub(1, #machine) == machine then
                    silent[#silent + 1] = name
                end
            end
        end
    end
end

-- A call that arrives after a later one changes nothing, and nobody waits for its answer.
if number <= own_number then
    return {own, own, live}
end
-- Nothing was here, or nobody has called lately: what is here may be older than what gateways hold.
if not called or now - called > PARTS_QUIET then
    quiet = now + PARTS_QUIET
end
if held < 0 then
    call('HDEL', KEYS[1], gateway)
    call('HSET', KEYS[1], 'called', ('%.0f'):format(now), 'quiet', ('%.0f'):format(quiet or 0))
    call('PEXPIRE', KEYS[1], PARTS_KEPT_MS)
    return {0, 0, live - 1}
end
local free = math.max(PARTS_WHOLE - others, 0)
local fair = math.floor(math.max(PARTS_WHOLE - reserved, 0) / live)
-- It may hold more than is noted, if that was lost; but not what others were given since.
local units = math.min(held, math.max(own, free))
if not quiet or now >= quiet then
    units = math.max(units, math.min(fair, free))
end
call('HSET', KEYS[1], gateway, ('%.0f %.0f %.0f'):format(units, now, number), 'called', ('%.0f'):format(now),
    'quiet', ('%.0f'):format(quiet or 0))
call('PEXPIRE', KEYS[1], PARTS_KEPT_MS)
local answer = {units, fair, live}
for i = 1, math.min(#silent, MOST_SILENT) do
    answer[3 + i] = silent[i]
end
return answer
