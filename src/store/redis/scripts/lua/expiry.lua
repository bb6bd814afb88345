-- How long a key is kept, in ms, that says nothing any more from `moment` on.
local function kept_until(moment)
    return math.ceil((moment - now) / 1000) + (given and GIVEN_SLACK_MS or SLACK_MS)
end
