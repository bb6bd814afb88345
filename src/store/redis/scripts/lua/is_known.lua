-- Returns 1 if the client is known under all KEYS, else 0. ARGV as in a decision without charges: a purpose, which is
-- ignored, the client's hash for each key, and the time.
return count == 0 and known and 1 or 0
