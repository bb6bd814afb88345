//! Units of a limit that this process has leased from the store that it shares, and spends without asking for each.
//!
//! A call that decides a request of a busy key asks for a lease of so many more units. Redis keeps it beside the key: until it
//! is given back its units count there as if they were spent, and what was spent counts from the moment when the lease ended, so
//! no window sees more than its rate. One process has at most one lease of a key. Its cores share it.
//!
//! - [`held`]: the leases of this process, by key; [`leased_key`]: one key; [`lease`]: one lease; [`pace`]: how busy a key is.
//! - [`request`], [`asked`]: what a call asks and is answered; [`spent`]: what leases have paid of a request.

mod asked;
mod held;
mod lease;
mod leased_key;
mod pace;
mod request;
mod spent;

pub use self::asked::AskedLeases;
pub use self::held::HeldLeases;
pub use self::held::ReturnedLease;
pub use self::lease::LEASE_SPAN;
pub use self::request::EndedLease;
pub use self::request::LeaseRequest;
pub use self::spent::SpentLeases;
