//! The first two steps told to a person: which client, lists, route, limits and keys a request meets, and why.
