-- Settles requests that have passed, one after the other.
--
-- KEYS: the key of each settlement. ARGV[i]: the i-th settlement, see `layouts.md`. ARGV[1 + #KEYS]: the channel on
-- which it publishes keys that were reset or have room again. ARGV[2 + #KEYS]: the time in us, if it is not that of
-- this server.
local answer, words = {1, now}, {}
for i = 1, #KEYS do
    local settlement = ARGV[i]
    local word, was_known = settle[settlement:byte()](KEYS[i], settlement)
    if word then
        words[#words + 1] = word
    end
    if was_known or word and #word > KEY_DIGITS then
        answer[#answer + 1] = i
    end
end
if #words > 0 then
    local published = pcall('PUBLISH', ARGV[1 + #KEYS], ('@%.0f '):format(now) .. table.concat(words, ' '))
    if type(published) == 'table' then
        answer[1] = 0
    end
end
return failed or answer
