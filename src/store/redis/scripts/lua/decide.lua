-- Decides a group of charges: those that pass are charged together, see `decision::Batch`.
--
-- KEYS: one for each charge, then one for each subject that the client must be known for.
-- ARGV[1]: D decide, N another server has denied already, L look.
-- ARGV[1 + i]: the i-th charge, whole numbers with the highest byte first:
--   kind 1, mode 1 (1 attempts, + 2 shadow, + 4 delay, + 8 not charged without room, + 16 not for known clients),
--   limit 2, cost 4, how many rates 1, x 4, y 4, for each rate its count 4 and its window in seconds 4, and for logs how
--   long they last, in ms, as text, or for different values each of them 8; of a subject the client's hash 8.
-- ARGV[2 + #KEYS]: the time in us, where it is not the server's.
--
-- Answers whole numbers: the moment of the decision; for each charge how long until it has room in us, or -1, or -2
-- where it does not hold for a known client; when it was charged in us after the decision (a clock may have stepped
-- back), or -1; for each rate, unless it does not hold, what remains, and how long until there is more in us; and of
-- different values which were not there before, a bit for each.
--
-- Moments are us since the epoch: below 2^52 until the year 2112, so that they, their sums with windows, and whole
-- quotients of them are exact. Nothing is written before all is computed, and the first write is one that a server out
-- of memory refuses: all is written, or nothing.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, unpack, pack = redis.call, redis.pcall, struct.unpack, struct.pack
local purpose, now = ARGV[1], ARGV[2 + #KEYS]
local slack, real = 1000, nil
if now then
    now, slack = now + 0, 61000
else
    real = call('TIME')
    now = real[1] * 1000000 + real[2]
end
-- Long enough for four rates from the start: a table that grows is moved.
local reply = {now, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}

--@kinds

local charges, size, binding, refused, asked = {nil}, 1, purpose == 'D', nil, #KEYS
--@known
for i = 1, asked do
    local key, blob = KEYS[i], ARGV[i + 1]
    local kind, mode, limit, cost, n, x, y = unpack('>BBI2I4BI4I4', blob)
    local opens, state, a, b, d
    --@exempt
    --@look
    reply[size + 1], reply[size + 2] = -1, -1
    if opens then
        reply[size + 1] = opens > now and opens - now or 0
        if mode < 2 then
            binding = false
        elseif mode < 4 then
            refused = refused or {}
            refused[limit] = true
        end
    end
    charges[#charges + 1] = {
        key = key, blob = blob, kind = kind, mode = mode, limit = limit, cost = cost, n = n, x = x, y = y,
        place = size, state = state, a = a, b = b, d = d, value = false, expires = false,
    }
    size = size + 2 + 2 * n
    --@fresh
    --@asked
end
if purpose == 'L' then
    return reply
end

local written = false
for i = 1, #charges do
    local c = charges[i]
    local kind, mode = c.kind, c.mode
    local passes
    if mode < 2 then
        passes = binding
    elseif mode < 4 then
        passes = not (refused and refused[c.limit])
    else
        passes = binding and (mode < 8 or reply[c.place + 1] < 0)
    end
    -- A request that is denied is an attempt, but never in flight.
    if passes or mode % 2 == 1 and kind ~= 7 then
        local at
        --@charge
        reply[c.place + 2] = at - now
        written = true
    end
end
if written then
    for i = 1, #charges do
        local c = charges[i]
        local value = c.value
        if value then
            call('SET', c.key, value, 'PX', c.expires)
        elseif c.expires then
            --@write
        end
    end
end
return reply
