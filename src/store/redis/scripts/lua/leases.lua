-- Leases: units that gateways spend by themselves. They are kept beside their key, so that a reset of the key does not
-- free what may be spent yet. In a table `l`, `name` is where the leases of the key are, and `ended` the id of the
-- lease that its holder ends now, of which it has spent `spent`.

-- Returns for how long at most what is spent counts in the state of the key, in us. Nothing is charged meanwhile: a
-- charge would count what is late.
local function counting_span(c)
    local longest = c.span * MICROS
    if c.kind == KIND_COUNTER or c.kind == KIND_BUCKETED then
        -- Until the window after its own has ended, or the slice in which it was a window old.
        longest = 2 * longest
    elseif c.kind == KIND_TOKEN then
        for p = 18, 10 + 8 * c.rates, 8 do
            local most, length = unpack('>I4I4', c.argument, p)
            longest = math.max(longest, math.ceil(c.option / most) * length * MICROS)
        end
        -- What was charged before a lease is late leaked with what was spent of it.
        longest = longest + LEASE_GRACE
    end
    return math.min(longest, LARGEST_EXACT)
end

-- Reads the leases of the key of `c`. Adds to `l`: what `holds` units and how many it holds, how many units are
-- `late`, which the next charge counts, and what is known of the lease that ends. Its `windows` are those of a fixed
-- window, looked at before.
local function read_leases(c, l)
    local s, holds, late, begin = pcall('GET', l.name), {}, {}, now - counting_span(c)
    l.held, l.late_units, l.active, l.given, l.last = 0, 0, 0, nil, 0
    -- A fixed window that a reset has closed is opened by what was spent of leases since.
    local grace = l.windows and l.windows[1].opened == 0 and 0 or LEASE_GRACE
    if type(s) == 'string' and #s % LEASE_RECORD == 0 then
        for p = 1, #s, LEASE_RECORD do
            local id, units, ends = unpack('>c8I4I7', s, p)
            if id == l.ended then
                l.given, l.ends = units, ends
            elseif ends + grace <= now then
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

-- Returns how many units of these leases ended before `moment`.
local function ended_before(moment, leases)
    local all = 0
    for j = 1, #leases do
        local units, ends = unpack('>I4I7', leases[j], 9)
        all = all + (ends <= moment and units or 0)
    end
    return all
end

-- Sets in `c` for how many units room is looked for and charged: `own` ones, with what was spent of leases, and if
-- `holds` with what they hold. `past` is for each fixed window how many of these it does not count: those leases ended
-- before it opened.
local function set_units(c, l, own, holds)
    c.cost = own + l.spent + l.late_units + (holds and l.held or 0)
    if c.kind == KIND_FIXED then
        local past = {}
        for r = 1, c.rates do
            local w = l.windows[r]
            local opened = (w.used > 0 or w.opened == 0) and w.opened or now
            past[r] = (l.ends and l.ends <= opened and l.spent or 0) + ended_before(opened, l.late)
                + (holds and ended_before(opened, l.holds) or 0)
        end
        c.past = past
    end
end

-- Writes the leases of the key of `c`.
local function write_leases(c, l)
    if #l.holds == 0 then
        call('DEL', l.name)
    else
        call('SET', l.name, table.concat(l.holds), 'PX', kept_until(l.last + LEASE_GRACE + counting_span(c)))
    end
end
