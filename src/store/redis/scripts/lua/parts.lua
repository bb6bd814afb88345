-- Notes which part of every limit a gateway holds, and grants it what is free, up to what would be fair.
--
-- KEYS[1]: a hash: for each gateway `units moment number`, with `left` for the units when it has left; `server` which
-- server has written it, `quiet` until when nothing is granted.
-- ARGV[1]: the gateway, the number of its call, and the units that it holds, or -1 if it leaves. ARGV[2]: gateways that
-- are over. ARGV[3]: the time in us, if it is not that of this server.
-- Answers what the gateway holds from now on, what would be fair, how many gateways there are, 1 if any comes or goes
-- with this call, for how many us nothing is granted, and the other gateways on the machine of this one.
local gateway, number, held = ARGV[1]:match('^(%S+) (%d+) (%-?%d+)$')
number, held = number + 0, held + 0
local over, neighbours = {}, {}
for name in ARGV[2]:gmatch('%S+') do
    over[name] = true
end
local machine = gateway:match('^[^-]*-')

-- Pages, which may repeat a field: users who were given the rights of the book before may not read all at once.
local entries, cursor = {}, '0'
repeat
    local page = call('HSCAN', KEYS[1], cursor, 'COUNT', 1000)
    for i = 1, #page[2], 2 do
        entries[page[2][i]] = page[2][i + 1]
    end
    cursor = page[1]
until cursor == '0'

local server, quiet, own
local own_number, others, reserved, live, changed = 0, 0, 0, 1, 0
for name, value in pairs(entries) do
    if name == 'server' then
        server = value
    elseif name == 'quiet' then
        quiet = value + 0
    else
        local units, moment, last = value:match('^(%w+) (%d+) (%d+)$')
        local has_left = units == 'left'
        units, moment = has_left and 0 or units + 0, moment + 0
        local is_silent = now - moment > PARTS_SILENT
        if name == gateway then
            own, own_number = units, last + 0
            changed = is_silent and 1 or changed
        elseif over[name] or is_silent and (units == 0 or now - moment > PARTS_RESERVED) then
            call('HDEL', KEYS[1], name)
            changed = 1
        elseif not has_left then
            others = others + units
            if is_silent then
                reserved = reserved + units
            else
                live = live + 1
            end
            if name:sub(1, #machine) == machine and #neighbours < MOST_NEIGHBOURS then
                neighbours[#neighbours + 1] = name
            end
        end
    end
end

-- A call that arrives after a later one changes nothing, and nobody waits for its answer.
if number <= own_number then
    return {own, own, live, changed, 0}
end
-- Nothing was here, or another server wrote it: gateways may hold more than is noted here.
local info = pcall('INFO', 'server')
local this = type(info) == 'string' and info:match('run_id:(%w+)') or 'unknown'
if server ~= this then
    quiet = now + PARTS_QUIET
end
local function note(units)
    call('HSET', KEYS[1], 'server', this, 'quiet', ('%.0f'):format(quiet), gateway,
        ('%s %.0f %.0f'):format(units, now, number))
    call('PEXPIRE', KEYS[1], PARTS_KEPT_MS)
end
if held < 0 then
    -- An earlier call may arrive later.
    note('left')
    return {0, 0, live - 1, 1, 0}
end
local free = math.max(PARTS_WHOLE - others, 0)
local fair = math.floor(math.max(PARTS_WHOLE - reserved, 0) / live)
-- It may hold more than is noted, if that was lost; but not what others were given since.
local units = math.min(held, math.max(own or 0, free))
if now >= quiet then
    units = math.max(units, math.min(fair, free))
end
if not own then
    changed = 1
end
note(('%.0f'):format(units))
local answer = {units, fair, live, changed, math.max(quiet - now, 0)}
for i = 1, #neighbours do
    answer[5 + i] = neighbours[i]
end
return answer
