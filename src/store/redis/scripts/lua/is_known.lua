-- Whether a client is known under every one of KEYS: 1 or 0. ARGV as in a decision without charges: a purpose, which
-- is of no interest, the client's hash for each key, and the time.
return count == 0 and known and 1 or 0
