-- Bans of all gateways: one hash, in which each ban is "until length step since hand blob", in microseconds of this
-- server, under its id; `hand` is h (by hand) or l (by a limit). Two sorted sets say when each is forgotten: those by
-- limits, which make room where there is none, and those by hand. Beside the bans, `v` is "begun changes": a number drawn
-- when the hash begins, and how many changes there were since. Who knows both knows whether anything was missed. A third
-- word is there after a change that could not be told: until when, in microseconds, gateways had better ask often.
local what, id, channel, most, draw = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local now = tonumber(ARGV[6])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
end

local function whole(number)
    return string.format('%.0f', number)
end

local function version()
    return string.match(redis.call('HGET', KEYS[1], 'v') or '', '^(%x+) (%d+) ?(%d*)$')
end

if what == 'load' then
    local page = redis.call('HSCAN', KEYS[1], id, 'COUNT', 500)
    return {whole(now), page[1], page[2]}
end

-- First of all that is written: where there is no memory, nothing is done.
local function change(verb, rest)
    local begun, changes, mute = version()
    begun, changes = begun or draw, whole(tonumber(changes or '0') + 1)
    local known = begun .. ' ' .. changes
    mute = tonumber(mute or '') or 0
    redis.call('HSET', KEYS[1], 'v', known .. (mute > now and ' ' .. whole(mute) or ''))
    local told = redis.pcall('PUBLISH', channel, table.concat({verb, begun, changes, id, rest}, ' '))
    if type(told) == 'table' then
        redis.call('HSET', KEYS[1], 'v', known .. ' ' .. whole(now + 86400e6))
    end
end

local function drop(set, name)
    redis.call('ZREM', KEYS[set], name)
    redis.call('HDEL', KEYS[1], name)
end

local text = redis.call('HGET', KEYS[1], id)
if what == 'lift' then
    if not text then return {'0'} end
    change('unban')
    drop(2, id)
    drop(3, id)
    return {'1', whole(now), text}
end

local ends, length, step, since, hand, blob = 0, 0, 0, 0, 'l', ''
if text then
    local at
    ends, length, step, since, hand, at = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%a) ()')
    ends, length, step, since = tonumber(ends), tonumber(length), tonumber(step), tonumber(since)
    blob = string.sub(text, at)
end

local begins = '1'
if what == 'trip' and now < ends then
    begins = '0'
elseif what == 'trip' then
    local lengths = #ARGV - 7
    local left = step
    if step > 0 then
        left = math.max(0, step - math.floor((now - ends) / math.max(1, length)))
    end
    local place = math.min(left + 1, lengths)
    length, step, since, hand, blob = tonumber(ARGV[7 + place]), place, now, 'l', ARGV[7]
    ends = now + length
elseif what == 'ban' then
    length, since, hand, blob = tonumber(ARGV[8]), now, 'h', ARGV[7]
    ends = now + length
else
    -- What a gateway decided by itself: whichever ends later holds.
    local theirs = now + tonumber(ARGV[8])
    step = math.max(step, tonumber(ARGV[10]))
    if theirs > ends then
        ends, length, since, hand, blob = theirs, tonumber(ARGV[9]), now - tonumber(ARGV[12]), ARGV[11], ARGV[7]
    end
end

if begins == '1' then
    local last = math.min(ends + length * step, 9e15)
    change('ban', table.concat({whole(ends - now), whole(length), whole(step), whole(math.max(0, now - since)), hand,
        blob}, ' '))
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZREM', KEYS[3], id)
    redis.call('HSET', KEYS[1], id,
        table.concat({whole(ends), whole(length), whole(step), whole(since), hand, blob}, ' '))
    redis.call('ZADD', hand == 'h' and KEYS[3] or KEYS[2], whole(last), id)
    for set = 2, 3 do
        for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[set], '0', whole(now), 'LIMIT', 0, 100)) do
            drop(set, name)
        end
    end
    if redis.call('ZCARD', KEYS[2]) + redis.call('ZCARD', KEYS[3]) > most then
        for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf', 'LIMIT', 0, 1)) do
            drop(2, name)
        end
    end
    local stays = math.ceil((last - now) / 1000) + 1
    for key = 1, 3 do
        if redis.call('PTTL', KEYS[key]) < stays then redis.call('PEXPIRE', KEYS[key], whole(stays)) end
    end
end
local begun, changes = version()
return {begins, begun or '', changes or '0', whole(ends - now), whole(length), whole(step), whole(math.max(0, now - since)), hand, blob}
