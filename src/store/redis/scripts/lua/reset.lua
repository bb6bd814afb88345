-- Resets a key. Slots in flight stay taken until their requests end.
settle[SETTLE_RESET] = function(key)
    if pcall('GETRANGE', key, '0', '0') ~= pack('>B', TAG_CONCURRENT) and write('DEL', key) then
        return key:sub(-KEY_DIGITS)
    end
end
