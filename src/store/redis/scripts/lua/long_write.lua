local writes = c.state.writes
for j = 1, #writes, 2 do
    call('SETRANGE', c.key, writes[j], writes[j + 1])
end
call('PEXPIRE', c.key, c.expires)
