-- Returns what is left of the values `s` without those of the charge `c`.
local function take_back_distinct(c, s, moment)
    if s:byte() ~= TAG_DISTINCT or #s % 15 ~= 1 then
        return nil
    end
    local left = s
    for j = 1, c.cost do
        local item, p = c.argument:sub(10 + 8 * (c.rates + j), 17 + 8 * (c.rates + j)) .. pack('>I7', moment), 2
        while p do
            p = left:find(item, p, true)
            if p and p % 15 == 2 then
                left, p = left:sub(1, p - 1) .. left:sub(p + 15), nil
            else
                p = p and p + 1
            end
        end
    end
    if left ~= s then
        return #left > 1 and left or ''
    end
end
