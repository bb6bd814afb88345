-- Decides charges that pass or are denied together, see `decision::Batch`. `layouts.md` describes the bytes of charges,
-- answers and states.
--
-- KEYS: one for each charge, then one for each subject under which the client must be known. ARGV[1]: a purpose.
-- ARGV[1 + i]: the i-th charge, or for a subject the client's hash. ARGV[2 + #KEYS]: the time in us, if it is not that
-- of this server.
--
-- Moments are us since the epoch. They are below 2^52 until the year 2112, so that they, their sums with windows, and
-- their whole quotients are exact. Nothing is written before everything is computed, and a server that is out of memory
-- refuses the first write: everything is written, or nothing.
local purpose = ARGV[1]
-- The answer. Sized for four rates from the start, because a table that grows is copied.
local reply = {now, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
local charges, asked, size, binding, refused = {nil}, 0, 1, purpose == PURPOSE_DECIDE, nil
for i = 1, count do
    local argument = ARGV[i + 1]
    local kind, mode, limit, cost, rates, option, span = unpack('>BBI2I4BI4I4', argument)
    -- A free charge never depends on who asks.
    if known and mode >= MODE_UNLESS_KNOWN then
        reply[size + 1], reply[size + 2] = ANSWER_EXEMPT, ANSWER_NONE
        size = size + 2
    else
        local is_free = mode >= MODE_FREE
        mode = mode % MODE_UNLESS_KNOWN
        local c = {
            key = KEYS[i], argument = argument, kind = kind, mode = mode, cost = cost, rates = rates, option = option,
            span = span, reply = reply, place = size, is_free = is_free,
        }
        local opens = look(c)
        reply[size + 1], reply[size + 2] = ANSWER_NONE, ANSWER_NONE
        if opens then
            reply[size + 1] = opens > now and opens - now or 0
            if mode < MODE_SHADOW then
                binding = false
            elseif mode < MODE_DELAY then
                refused = refused or {}
                refused[limit] = true
            end
        end
        if mode >= MODE_SHADOW then
            c.limit = limit
        end
        asked = asked + 1
        charges[asked] = c
        size = size + 2 + 2 * rates
        if kind == KIND_DISTINCT then
            size = size + 1
        end
    end
end
if purpose == PURPOSE_LOOK then
    return reply
end

local written = false
for i = 1, asked do
    local c = charges[i]
    local mode = c.mode
    local passes
    if mode < MODE_SHADOW then
        passes = binding
    elseif mode < MODE_DELAY then
        passes = not (refused and refused[c.limit])
    else
        passes = binding and (mode < MODE_WITH_ROOM or reply[c.place + 1] == ANSWER_NONE)
    end
    -- A denied request counts as an attempt, but never takes a slot.
    if (passes or mode % 2 == MODE_ATTEMPTS and c.kind ~= KIND_CONCURRENT) and not c.is_free then
        reply[c.place + 2] = charge(c) - now
        written = true
    end
end
if written then
    for i = 1, asked do
        write_charge(charges[i])
    end
end
