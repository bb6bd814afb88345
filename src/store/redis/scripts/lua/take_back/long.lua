-- Logs know by themselves whether they are rings.
local take_back_long = take_back_log
