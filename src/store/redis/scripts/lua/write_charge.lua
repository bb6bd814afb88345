-- Writes what a charge has changed of the state of its key.
local function write_charge(c)
    local writes = c.writes
    if c.value then
        call('SET', c.key, c.value, 'PX', c.expires)
    elseif writes then
        for j = 1, #writes, 2 do
            call('SETRANGE', c.key, writes[j], writes[j + 1])
        end
        call('PEXPIRE', c.key, c.expires)
    end
end
