-- Charges whose keys may have leases. Behind KEYS of charges follows for each of them where its leases are, and in
-- ARGV what the gateway asks about its own, see `layouts.md`.
local leased, look_alone, charge_alone = {}, look, charge
while count > 0 and ARGV[1 + count]:byte() == 0 do
    local place, nodes, wanted, span, id, ended, spent = unpack('>I2I4I4I4c8c8I4', ARGV[1 + count], 2)
    leased[KEYS[place]] = {
        name = KEYS[count], nodes = nodes, wanted = wanted, span = span, id = id, ended = ended, spent = spent,
    }
    count = count - 1
end

-- Reports as taken what no request may take because of leases: so many `units`, but for those of the `past`.
local function withhold(c, l, units)
    local reply = c.reply
    for r = 1, c.rates do
        local at = c.place + 1 + 2 * r
        local remaining = reply[at] - units + (c.past and c.past[r] or 0)
        if remaining <= 0 then
            -- A lease may be given back.
            if reply[at] > 0 and l.first and l.first - now < reply[at + 1] then
                reply[at + 1] = l.first - now
            end
            remaining = 0
        end
        reply[at] = remaining
    end
end

look = function(c)
    local l = leased[c.key]
    if not l then
        return look_alone(c)
    end
    local cost = c.cost
    c.leases, l.cost = l, cost
    if c.kind == KIND_CONCURRENT then
        c.back = l.spent
        return look_alone(c)
    end
    if c.kind == KIND_FIXED then
        look_alone(c)
        l.windows = c.windows
    end
    read_leases(c, l)
    set_units(c, l, cost, true)
    local opens = look_alone(c)
    if opens and l.first then
        -- Leases may be given back unspent, at the latest when they end.
        c.cost, c.past = cost, nil
        opens = look_alone(c) or l.first
    end
    if ARGV[1] == PURPOSE_LOOK then
        set_units(c, l, 0, true)
        withhold(c, l, c.cost)
    end
    set_units(c, l, cost, false)
    return opens
end

-- Returns how many slots the gateway may take in advance, beside the one of its request.
local function slots_in_advance(c, l)
    local gateways = l.nodes > #c.holders and l.nodes or #c.holders
    local slots = math.floor((c.cost - c.taken - 1) / LEASED_PART / gateways)
    slots = slots < l.wanted and slots or l.wanted
    return slots > 1 and slots or 0
end

-- A charge counts what was spent of the lease that ends, too.
charge = function(c)
    local l = c.leases
    if l then
        l.is_charged = true
        if c.kind == KIND_CONCURRENT and not c.is_free then
            c.more = slots_in_advance(c, l)
        end
    end
    return charge_alone(c)
end
