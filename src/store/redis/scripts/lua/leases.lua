-- Leases: units that gateways spend by themselves. They are kept beside their key, so that a reset of the key does not
-- free what may be spent yet. In a table `l`, `name` is where the leases of the key are, and `ended` the id of the
-- lease that its holder ends now, of which it has spent `spent`.

-- Reads the leases of the key of `c`. Adds to `l`: what `holds` units and how many it holds, how many units are
-- `late`, which the next charge counts, and what is known of the lease that ends.
local function read_leases(c, l)
    local s, holds, late, begin = pcall('GET', l.name), {}, {}, now - c.span * MICROS
    l.held, l.late_units, l.active, l.given, l.last = 0, 0, 0, nil, 0
    if type(s) == 'string' and #s % LEASE_RECORD == 0 then
        for p = 1, #s, LEASE_RECORD do
            local id, units, ends = unpack('>c8I4I7', s, p)
            if id == l.ended then
                l.given, l.ends = units, ends
            elseif ends + LEASE_GRACE <= now then
                -- What its holder has not given back was spent until it ended.
                if ends > begin then
                    late[#late + 1] = s:sub(p, p + LEASE_RECORD - 1)
                    l.late_units = l.late_units + units
                end
            else
                holds[#holds + 1] = s:sub(p, p + LEASE_RECORD - 1)
                l.held = l.held + units
                if ends > now then
                    l.active = l.active + 1
                    l.first = l.first and l.first < ends and l.first or ends
                end
            end
            l.last = ends > l.last and ends or l.last
        end
    end
    l.spent = l.given and (l.spent < l.given and l.spent or l.given) or 0
    l.holds, l.late = holds, late
end

-- Writes the leases of the key of `c`.
local function write_leases(c, l)
    if #l.holds == 0 then
        call('DEL', l.name)
    else
        call('SET', l.name, table.concat(l.holds), 'PX', kept_until(l.last + LEASE_GRACE + c.span * MICROS))
    end
end
