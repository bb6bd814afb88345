-- Slots in flight are not taken back, but released.
local function take_back_concurrent()
    return nil
end
