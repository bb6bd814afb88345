-- Resets a key. Slots in flight stay taken until their requests end. Where nothing is counted, no gateway is told:
-- whatever one knows of the key came from here, and has ended with it.
settle[SETTLE_RESET] = function(key)
    local tag = pcall('GETRANGE', key, '0', '0')
    if tag ~= '' and tag ~= pack('>B', TAG_CONCURRENT) and write('DEL', key) then
        return key:sub(-KEY_DIGITS)
    end
end
