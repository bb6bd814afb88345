-- Forgets what was counted. Slots in flight stay taken: who holds them gives them back.
--
-- KEYS: what to forget.
for i = 1, #KEYS do
    local s = redis.pcall('GETRANGE', KEYS[i], '0', '0')
    if s ~= '\9' then
        redis.call('DEL', KEYS[i])
    end
end
