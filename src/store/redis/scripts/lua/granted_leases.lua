-- Ends a decision about keys that may have leases: grants leases and writes them. Slots in advance are kept as slots in
-- flight are. Behind the answers of charges
-- follows for each of these keys how many units were granted.

-- Returns how many units the gateway may lease after its charge.
local function granted(c, l)
    local gateways, least = l.nodes > l.active and l.nodes or l.active + 1, nil
    for r = 1, c.rates do
        local most, length = unpack('>I4I4', c.argument, 10 + 8 * r)
        if most < LEASED_PACE * gateways * length then
            return 0
        end
        -- What is spent of it is to be spent in this window.
        if c.kind == KIND_FIXED and c.windows[r].opened + c.windows[r].length < now + l.span then
            return 0
        end
        local remaining = reply[c.place + 1 + 2 * r]
        least = least and least < remaining and least or remaining
    end
    local units = math.floor((least - l.held) / LEASED_PART / gateways)
    units = units < l.wanted and units or l.wanted
    units = units - units % l.cost
    return units >= 2 * l.cost and #l.holds < MOST_LEASES and units or 0
end

for i = 1, asked do
    local c = charges[i]
    local l = c.leases
    if l and c.kind == KIND_CONCURRENT then
        size = size + 1
        reply[size] = c.more or 0
        if not l.is_charged and c.back > 0 then
            c.keep(c)
            write_charge(c)
        end
    elseif l then
        local units, changed = 0, l.given or l.is_charged and #l.late > 0
        if not l.is_charged then
            set_units(c, l, 0, true)
            for j = 1, #l.late do
                l.holds[#l.holds + 1] = l.late[j]
            end
            -- It ended now, and nothing of it will be given back.
            if l.spent > 0 then
                l.holds[#l.holds + 1] = pack('>c8I4I7', l.ended, l.spent, l.ends < now and l.ends or now)
            end
        else
            if l.wanted > 0 and not c.is_free then
                units = granted(c, l)
            end
            l.spent, l.late, l.late_units = 0, {}, 0
            set_units(c, l, units, true)
            if units > 0 then
                local ends = now + l.span
                l.holds[#l.holds + 1] = pack('>c8I4I7', l.id, units, ends)
                l.last = ends > l.last and ends or l.last
                changed = true
            end
        end
        withhold(c, l, c.cost)
        size = size + 1
        reply[size] = units
        if changed then
            write_leases(c, l)
        end
    end
end
return reply
