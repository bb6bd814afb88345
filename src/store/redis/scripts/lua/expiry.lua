-- Returns for how many ms to keep a key whose state expires at `moment`.
local function kept_until(moment)
    return math.ceil((moment - now) / 1000) + (given and GIVEN_SLACK_MS or SLACK_MS)
end
