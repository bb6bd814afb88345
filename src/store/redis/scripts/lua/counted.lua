-- The settlements of counted charges.

-- What a decision would answer to the charge at hand.
local reply = {}

-- Looks at the charge that `argument` describes. Returns the charge, and when it has room if not now.
local function looked_at(key, argument)
    local kind, mode, _, cost, rates, option, span = unpack('>BBI2I4BI4I4', argument)
    local c = {
        key = key, argument = argument, kind = kind, mode = mode, cost = cost, rates = rates, option = option,
        span = span, reply = reply, place = 1,
    }
    local opens = look(c)
    reply[2] = opens and 0 or ANSWER_NONE
    return c, opens
end

-- Takes back a charge that still counts.
settle[SETTLE_TAKE_BACK] = function(key, settlement)
    local moment = unpack('>I8', settlement, 2)
    local c, full = looked_at(key, settlement:sub(10))
    if c.kind == KIND_DISTINCT then
        -- A new value had no room, even if these values had.
        full = false
        for r = 1, c.rates do
            full = full or reply[2 + 2 * r] == 0
        end
    end
    local s = pcall('GET', key)
    local left = type(s) == 'string' and #s > 0 and take_back(c, s, moment)
    if left and leave(key, left) and full then
        return '+' .. key:sub(-KEY_DIGITS)
    end
end

-- Charges now, whether or not there is room.
settle[SETTLE_CHARGE] = function(key, settlement)
    local c = looked_at(key, settlement:sub(2))
    charge(c)
    local writes = c.writes
    if c.value then
        write('SET', key, c.value, 'PX', c.expires)
    elseif writes then
        for j = 1, #writes, 2 do
            call('SETRANGE', key, writes[j], writes[j + 1])
        end
        call('PEXPIRE', key, c.expires)
    end
end
