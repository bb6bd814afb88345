-- Returns `a * b / m` rounded down, and the remainder: exact if the quotient is below 2^53. a is at most 2^32, b below
-- 2^53, m below 2^52. LARGEST_EXACT is 2^53.
local function divided(a, b, m)
    local product = a * b
    if product < LARGEST_EXACT then
        local rest = math.fmod(product, m)
        return (product - rest) / m, rest
    end
    local rest = math.fmod(b, m)
    local whole, quotient, remainder = a * ((b - rest) / m), 0, 0
    -- Long multiplication, with digits so small that every product stays below 2^53.
    local _, bits = math.frexp(m)
    local base, top = 2 ^ (53 - bits), 1
    while top * base <= a do
        top = top * base
    end
    while top >= 1 do
        local digit = math.floor(a / top)
        local shifted, added = remainder * base, digit * rest
        local low, high = math.fmod(shifted, m), math.fmod(added, m)
        quotient = quotient * base + (shifted - low) / m + (added - high) / m
        remainder = low + high
        if remainder >= m then
            quotient, remainder = quotient + 1, remainder - m
        end
        a, top = a - digit * top, top / base
    end
    return whole + quotient, remainder
end
