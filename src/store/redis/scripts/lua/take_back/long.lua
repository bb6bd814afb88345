-- The function for logs also handles rings.
local take_back_long = take_back_log
