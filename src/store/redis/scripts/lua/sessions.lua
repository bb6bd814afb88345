-- Stores the sessions of all gateways.
--
-- KEYS[1]: a hash of the sessions; KEYS[2]: the stamp of each, which grows with every change and use; KEYS[3]: the
-- stamps of sessions that were forgotten. `layouts.md` describes the bytes.
-- ARGV: the verb, how many sessions there may be, the channel for changes, a random number for a new hash, the time in
-- us or empty for the time of this server, and the arguments of the verb.
local verb, most, channel = ARGV[1], ARGV[2] + 0, ARGV[3]
local begun, changes, stamp, unpublished =
    string.match(call('HGET', KEYS[1], 'v') or '', '^(%x+) (%d+) (%d+) ?(%d*)$')
begun, changes, stamp = begun or ARGV[4], tonumber(changes or '0'), tonumber(stamp or '0')
unpublished = tonumber(unpublished or '') or 0

local function whole(number)
    return ('%.0f'):format(number)
end

local function version()
    local known = begun .. ' ' .. whole(changes) .. ' ' .. whole(stamp)
    return unpublished > now and known .. ' ' .. whole(unpublished) or known
end

-- The account of a session that is not over, its time and its last use.
local function find(session)
    local kept = call('HGET', KEYS[1], session)
    if kept then
        local keep, used = unpack('>I4I7', kept, 17)
        if now < used + keep * TENTH then return string.sub(kept, 1, 16), keep, used end
    end
end

if verb == 'load' then
    local gone, forgotten, sessions = {}, ARGV[6], {}
    local listed = call('ZRANGEBYSCORE', KEYS[3], '(' .. forgotten, '+inf', 'WITHSCORES', 'LIMIT', 0, SESSIONS_OF_PAGE)
    local is_last = #listed < 2 * SESSIONS_OF_PAGE
    for at = 1, #listed, 2 do
        gone[#gone + 1], forgotten = listed[at], listed[at + 1]
    end
    local changed = ARGV[7]
    listed = call('ZRANGEBYSCORE', KEYS[2], '(' .. changed, '+inf', 'WITHSCORES', 'LIMIT', 0, SESSIONS_OF_PAGE)
    is_last = is_last and #listed < 2 * SESSIONS_OF_PAGE
    for at = 1, #listed, 2 do
        local account, keep, used = find(listed[at])
        if account then
            sessions[#sessions + 1] = listed[at] .. account .. pack('>I4I7', keep, math.max(0, now - used))
        end
        changed = listed[at + 1]
    end
    -- Which sessions were forgotten longer ago is not known any more.
    local known_since = math.max(tonumber(call('HGET', KEYS[1], 'g') or '0'), now - FORGOTTEN_MS * 500)
    return {
        version(), whole(known_since), forgotten, changed, table.concat(gone), table.concat(sessions),
        is_last and 1 or 0,
    }
end

local records, used_again, unknown, stays = {}, {}, {}, 0

local function next_stamp()
    stamp = math.max(now, stamp + 1)
    return whole(stamp)
end

local function write(session, account, keep, used)
    call('HSET', KEYS[1], session, account .. pack('>I4I7', keep, used))
    call('ZADD', KEYS[2], next_stamp(), session)
    stays = math.max(stays, math.ceil((used + keep * TENTH - now) / 1000) + 1)
end

local function learn(session, account, keep, used)
    write(session, account, keep, used)
    call('ZREM', KEYS[3], session)
    records[#records + 1] = 'l' .. session .. account .. pack('>I4I7', keep, math.max(0, now - used))
end

local function forget(session)
    if not call('HGET', KEYS[1], session) then return end
    call('ZADD', KEYS[3], next_stamp(), session)
    call('HDEL', KEYS[1], session)
    call('ZREM', KEYS[2], session)
    records[#records + 1] = 'f' .. session
    if call('ZCARD', KEYS[3]) > MOST_FORGOTTEN then
        local oldest = call('ZRANGEBYSCORE', KEYS[3], '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
        call('ZREM', KEYS[3], oldest[1])
        call('HSET', KEYS[1], 'g', oldest[2])
    end
    if call('PTTL', KEYS[3]) < FORGOTTEN_MS / 2 then call('PEXPIRE', KEYS[3], FORGOTTEN_MS) end
    stays = math.max(stays, FORGOTTEN_MS)
end

local is_own = 1
if verb == 'sign' then
    local account, keep, carried = ARGV[6], unpack('>I4', ARGV[7]), ARGV[8]
    for at = 1, #carried, 16 do
        local other = find(string.sub(carried, at, at + 15))
        if other and other ~= account then is_own = 0 end
    end
    if is_own == 1 then
        for at = 1, #ARGV[9], 16 do
            learn(string.sub(ARGV[9], at, at + 15), account, keep, now)
        end
    end
elseif verb == 'change' then
    for argument = 6, #ARGV do
        local change = ARGV[argument]
        local session = string.sub(change, 2, 17)
        if string.sub(change, 1, 1) == 'f' then
            forget(session)
        else
            local account, keep = find(session)
            if not account and #change > 33 then
                account, keep = string.sub(change, 34, 49), unpack('>I4', change, 50)
            end
            if account then learn(string.sub(change, 18, 33), account, keep, now) end
        end
    end
elseif verb == 'send' then
    -- Sessions that Redis may not have: the later use holds.
    for at = 1, #ARGV[6], 43 do
        local session, account = string.sub(ARGV[6], at, at + 15), string.sub(ARGV[6], at + 16, at + 31)
        local keep, age = unpack('>I4I7', ARGV[6], at + 32)
        local known, _, used = find(session)
        if keep * TENTH > age and (not known or used < now - age) then
            learn(session, account, keep, now - age)
        end
    end
else
    for at = 1, #ARGV[6], 23 do
        local session = string.sub(ARGV[6], at, at + 15)
        local account, keep, used = find(session)
        local age = unpack('>I7', ARGV[6], at + 16)
        if account then
            used = math.max(used, now - age)
            write(session, account, keep, used)
            used_again[#used_again + 1] = session .. pack('>I7', math.max(0, now - used))
        else
            unknown[#unknown + 1] = session
        end
    end
end

local function publish(kind, listed)
    local message = table.concat({'sessions', kind, begun, whole(changes), whole(stamp), table.concat(listed)}, ' ')
    if type(pcall('PUBLISH', channel, message)) == 'table' then unpublished = now + 86400e6 end
end

if #records > 0 then
    changes = changes + 1
    local excess = math.max(0, math.min(call('ZCARD', KEYS[2]) - most, 1000))
    for place, session in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf', 'LIMIT', 0, excess + 4)) do
        if place <= excess or not find(session) then
            call('ZREM', KEYS[2], session)
            call('HDEL', KEYS[1], session)
        end
    end
    publish('c', records)
end
if #used_again > 0 then publish('u', used_again) end
if stays > 0 then
    call('HSET', KEYS[1], 'v', version())
    for key = 1, 2 do
        if call('PTTL', KEYS[key]) < stays then call('PEXPIRE', KEYS[key], whole(stays)) end
    end
end
return {is_own, version(), table.concat(unknown)}
