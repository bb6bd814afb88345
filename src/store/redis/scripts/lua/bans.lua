-- Stores the bans of all gateways.
--
-- KEYS[1]: a hash of the bans by id; KEYS[2] and KEYS[3]: when each ban by a limit, and by an operator, can be removed.
-- ARGV: the verb, the id of the ban, the channel for changes, a random number for a new hash, the time in us or empty
-- for the time of this server, and the arguments of the verb.
local verb, id, channel, draw = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function whole(number)
    return ('%.0f'):format(number)
end

local function version()
    return string.match(call('HGET', KEYS[1], 'v') or '', '^(%x+) (%d+) ?(%d*)$')
end

if verb == 'load' then
    local page = call('HSCAN', KEYS[1], id, 'COUNT', 500)
    return {whole(now), page[1], page[2]}
end

-- Counts and publishes a change. Called before any other write: if this server is out of memory, nothing is written.
local function change(word, rest)
    local begun, changes, unpublished = version()
    begun, changes = begun or draw, whole(tonumber(changes or '0') + 1)
    local known = begun .. ' ' .. changes
    unpublished = tonumber(unpublished or '') or 0
    call('HSET', KEYS[1], 'v', known .. (unpublished > now and ' ' .. whole(unpublished) or ''))
    local published = pcall('PUBLISH', channel, table.concat({word, begun, changes, id, rest}, ' '))
    if type(published) == 'table' then
        call('HSET', KEYS[1], 'v', known .. ' ' .. whole(now + 86400e6))
    end
end

local function remove(set, name)
    call('ZREM', KEYS[set], name)
    call('HDEL', KEYS[1], name)
end

local text = call('HGET', KEYS[1], id)
if verb == 'lift' then
    if text then
        change('unban')
        remove(2, id)
        remove(3, id)
    end
    local begun, changes = version()
    return {text and '1' or '0', begun or '', changes or '0', whole(now), text or ''}
end

local ends, length, step, since, hand, blob = 0, 0, 0, 0, 'l', ''
if text then
    local at
    ends, length, step, since, hand, at = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%a) ()')
    ends, length, step, since = tonumber(ends), tonumber(length), tonumber(step), tonumber(since)
    blob = string.sub(text, at)
end

local begins = '1'
if verb == 'trip' and now < ends then
    begins = '0'
elseif verb == 'trip' then
    local lengths = #ARGV - 6
    local left = step
    if step > 0 then
        left = math.max(0, step - math.floor((now - ends) / math.max(1, length)))
    end
    local place = math.min(left + 1, lengths)
    length, step, since, hand, blob = tonumber(ARGV[6 + place]), place, now, 'l', ARGV[6]
    ends = now + length
elseif verb == 'ban' then
    length, since, hand, blob = tonumber(ARGV[7]), now, 'h', ARGV[6]
    ends = now + length
else
    -- A ban that a gateway set during an outage: the ban that ends later holds.
    local theirs = now + tonumber(ARGV[7])
    step = math.max(step, tonumber(ARGV[9]))
    if theirs > ends then
        ends, length, since, hand, blob = theirs, tonumber(ARGV[8]), now - tonumber(ARGV[11]), ARGV[10], ARGV[6]
    end
end

if begins == '1' then
    local last = math.min(ends + length * step, 9e15)
    change('ban', table.concat({whole(ends - now), whole(length), whole(step), whole(math.max(0, now - since)), hand,
        blob}, ' '))
    call('ZREM', KEYS[2], id)
    call('ZREM', KEYS[3], id)
    call('HSET', KEYS[1], id,
        table.concat({whole(ends), whole(length), whole(step), whole(since), hand, blob}, ' '))
    call('ZADD', hand == 'h' and KEYS[3] or KEYS[2], whole(last), id)
    for set = 2, 3 do
        for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[set], '0', whole(now), 'LIMIT', 0, 100)) do
            remove(set, name)
        end
    end
    if call('ZCARD', KEYS[2]) + call('ZCARD', KEYS[3]) > MOST_BANS then
        for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf', 'LIMIT', 0, 1)) do
            remove(2, name)
        end
    end
    local stays = math.ceil((last - now) / 1000) + 1
    for key = 1, 3 do
        if call('PTTL', KEYS[key]) < stays then call('PEXPIRE', KEYS[key], whole(stays)) end
    end
end
local begun, changes = version()
return {
    begins, begun or '', changes or '0', whole(ends - now), whole(length), whole(step), whole(math.max(0, now - since)),
    hand, blob,
}
