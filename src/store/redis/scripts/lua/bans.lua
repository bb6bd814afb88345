-- Stores the bans of all gateways.
--
-- KEYS[1]: a hash of the bans by id; KEYS[2] and KEYS[3]: when each ban by a limit, and by an operator, can be removed.
-- ARGV: the verb `load` with a cursor, or `change` with nothing; the channel for changes, a random number for a new
-- hash, the time in us or empty for the time of this server; then, for each change, what it is, the id of the ban, how
-- many arguments follow, and the arguments.
local verb, cursor, channel, draw = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function whole(number)
    return ('%.0f'):format(number)
end

if verb == 'load' then
    local page = call('HSCAN', KEYS[1], cursor, 'COUNT', 500)
    return {whole(now), page[1], page[2]}
end

local begun, changes, unpublished = string.match(call('HGET', KEYS[1], 'v') or '', '^(%x+) (%d+) ?(%d*)$')
changes, unpublished = tonumber(changes or '0'), tonumber(unpublished or '') or 0
-- One for each change, until when they are kept, and their answers.
local messages, last_of_all, answers = {}, 0, {}

local function keep_version()
    local version = begun .. ' ' .. whole(changes)
    call('HSET', KEYS[1], 'v', version .. (unpublished > now and ' ' .. whole(unpublished) or ''))
end

-- Counts a change. Called before any other write: if this server is out of memory, nothing is written.
local function change(word, id, rest)
    begun, changes = begun or draw, changes + 1
    if #messages == 0 then
        keep_version()
    end
    messages[#messages + 1] = table.concat({word, begun, whole(changes), id, rest}, ' ')
end

local function remove(set, name)
    call('ZREM', KEYS[set], name)
    call('HDEL', KEYS[1], name)
end

local function lift(id, text)
    if text then
        change('unban', id)
        remove(2, id)
        remove(3, id)
    end
    return {text and '1' or '0', begun or '', whole(changes), whole(now), text or ''}
end

-- `at` is where its arguments begin, and `count` how many there are.
local function ban(word, id, text, at, count)
    local ends, length, step, since, hand, blob = 0, 0, 0, 0, 'l', ''
    if text then
        local behind
        ends, length, step, since, hand, behind = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%a) ()')
        ends, length, step, since = tonumber(ends), tonumber(length), tonumber(step), tonumber(since)
        blob = string.sub(text, behind)
    end
    local begins = '1'
    if word == 'trip' and now < ends then
        begins = '0'
    elseif word == 'trip' then
        local left = step
        if step > 0 then
            left = math.max(0, step - math.floor((now - ends) / math.max(1, length)))
        end
        local place = math.min(left + 1, count - 1)
        length, step, since, hand, blob = tonumber(ARGV[at + place]), place, now, 'l', ARGV[at]
        ends = now + length
    elseif word == 'ban' then
        length, since, hand, blob = tonumber(ARGV[at + 1]), now, 'h', ARGV[at]
        ends = now + length
    else
        -- A ban that a gateway set during an outage: the ban that ends later holds.
        local theirs = now + tonumber(ARGV[at + 1])
        step = math.max(step, tonumber(ARGV[at + 3]))
        if theirs > ends then
            ends, length, since, hand, blob =
                theirs, tonumber(ARGV[at + 2]), now - tonumber(ARGV[at + 5]), ARGV[at + 4], ARGV[at]
        end
    end
    local left, age = whole(ends - now), whole(math.max(0, now - since))
    if begins == '1' then
        local last = math.min(ends + length * step, 9e15)
        change('ban', id, table.concat({left, whole(length), whole(step), age, hand, blob}, ' '))
        call('ZREM', hand == 'h' and KEYS[2] or KEYS[3], id)
        call('HSET', KEYS[1], id,
            table.concat({whole(ends), whole(length), whole(step), whole(since), hand, blob}, ' '))
        call('ZADD', hand == 'h' and KEYS[3] or KEYS[2], whole(last), id)
        last_of_all = math.max(last_of_all, last)
    end
    return {begins, begun or '', whole(changes), left, whole(length), whole(step), age, hand, blob}
end

local at = 6
while ARGV[at] do
    local word, id, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
    local text = call('HGET', KEYS[1], id)
    answers[#answers + 1] = word == 'lift' and lift(id, text) or ban(word, id, text, at + 3, count)
    at = at + 3 + count
end

-- Removes what nobody needs any more, and those of limits that end first where there are too many.
if last_of_all > 0 then
    for set = 2, 3 do
        for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[set], '0', whole(now), 'LIMIT', 0, 100 * #messages)) do
            remove(set, name)
        end
    end
    local excess = call('ZCARD', KEYS[2]) + call('ZCARD', KEYS[3]) - MOST_BANS
    if excess > 0 then
        excess = math.min(excess, #messages)
        for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf', 'LIMIT', 0, excess)) do
            remove(2, name)
        end
    end
    local stays = math.ceil((last_of_all - now) / 1000) + 1
    for key = 1, 3 do
        if call('PTTL', KEYS[key]) < stays then call('PEXPIRE', KEYS[key], whole(stays)) end
    end
end

-- Many changes are one message, a line each.
if #messages > 0 then
    local published = pcall('PUBLISH', channel, table.concat(messages, '\n'))
    local failed = type(published) == 'table'
    if failed then
        unpublished = now + 86400e6
    end
    if failed or #messages > 1 then
        keep_version()
    end
end
return answers
