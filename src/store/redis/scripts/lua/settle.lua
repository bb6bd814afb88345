-- Settles what became of requests that passed, one after the other.
--
-- KEYS: what each settlement is about. ARGV[i], whole numbers with the highest byte first, begins with one of
--   1 a slot in flight comes back: who holds it 4;
--   2 what was charged counts no more: when it was charged 8, then the charge as in `decide.lua`, and of different values
--     those that were not there before;
--   3 counted now, whether or not there is room: the charge;
--   4 what was counted is forgotten, but slots in flight stay taken: who holds them gives them back;
--   5 the client is known from now on: its hash 8, how many may be 4, and for how long in us 7.
-- ARGV[1 + #KEYS]: where it is told which keys were reset, or have room again.
-- ARGV[2 + #KEYS]: the time in us, where it is not the server's.
--
-- Answers whole numbers: 1, or 0 where nobody could be told; the time; then which of the keys had no room and have some
-- again.
--
-- What the server does not write, it does not write: the others are settled all the same.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, unpack, pack = redis.call, redis.pcall, struct.unpack, struct.pack
local channel, now = ARGV[1 + #KEYS], ARGV[2 + #KEYS]
local slack, real = 1000, nil
if now then
    now, slack = now + 0, 61000
else
    real = call('TIME')
    now = real[1] * 1000000 + real[2]
end
-- What one charge would be answered.
local reply, size = {now}, 1
local told, words, failed = {1, now}, {}, nil

local function write(...)
    local done = pcall(...)
    if type(done) == 'table' and done.err then
        failed = done
    end
    return not failed
end

local function keep(key, value)
    if value == '' then
        return write('DEL', key)
    end
    return write('SET', key, value, 'KEEPTTL')
end

local function release(key, holder)
    local s = pcall('GET', key)
    if s and type(s) == 'string' and s:byte() == 9 and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local id, count, ends = unpack('>I4I4I7', s, p)
            if id == holder then
                s = s:sub(1, p - 1) .. (count > 1 and pack('>I4I4I7', id, count - 1, ends) or '') .. s:sub(p + 15)
                return keep(key, #s > 1 and s or '')
            end
        end
    end
end

-- Known clients: 11, then for each its hash 8, and until when it is known 7, the one that succeeded last first.
local function remember(key, client, most, span)
    local s, last = pcall('GET', key), now + span
    local parts = {'\11', client, pack('>I7', last)}
    if s and type(s) == 'string' and s:byte() == 11 and #s % 15 == 1 then
        for p = 2, #s, 15 do
            local ends = unpack('>I7', s, p + 8)
            if #parts - 2 < most and ends > now and s:sub(p, p + 7) ~= client then
                parts[#parts + 1] = s:sub(p, p + 14)
                last = ends > last and ends or last
            end
        end
    end
    write('SET', key, table.concat(parts), 'PX', math.ceil((last - now) / 1000) + slack)
end

--@kinds
for i = 1, #KEYS do
    local key, settled = KEYS[i], ARGV[i]
    local what = settled:byte()
    if what == 1 then
        release(key, (unpack('>I4', settled, 2)))
    elseif what == 4 then
        if pcall('GETRANGE', key, '0', '0') ~= '\9' and write('DEL', key) then
            words[#words + 1] = key:sub(-32)
        end
    elseif what == 5 then
        remember(key, settled:sub(2, 9), unpack('>I4I7', settled, 10))
    --@counted
    end
end
if #words > 0 then
    local heard = pcall('PUBLISH', channel, ('@%.0f '):format(now) .. table.concat(words, ' '))
    if type(heard) == 'table' then
        told[1] = 0
    end
end
return failed or told
