-- Ends a decision without leases.
return reply
