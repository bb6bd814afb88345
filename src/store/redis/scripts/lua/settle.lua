-- Settles what became of requests that passed, one after the other.
--
-- KEYS: what each settlement is about. ARGV[i]: the i-th settlement, drawn in `layouts.md`. ARGV[1 + #KEYS]: where it
-- is told which keys were reset, or have room again. ARGV[2 + #KEYS]: the time in us, where it is not the server's.
local answer, words = {1, now}, {}
for i = 1, #KEYS do
    local settlement = ARGV[i]
    local word = settle[settlement:byte()](KEYS[i], settlement)
    if word then
        words[#words + 1] = word
        if #word > KEY_DIGITS then
            answer[#answer + 1] = i
        end
    end
end
if #words > 0 then
    local heard = pcall('PUBLISH', ARGV[1 + #KEYS], ('@%.0f '):format(now) .. table.concat(words, ' '))
    if type(heard) == 'table' then
        answer[1] = 0
    end
end
return failed or answer
