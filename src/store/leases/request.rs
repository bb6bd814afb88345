//! What a call asks about the lease of a key.

/// What a call asks about the lease of a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseRequest {
    /// The number that the new lease gets.
    pub id: u64,
    /// How many units the gateway would spend in a second; zero: it leases nothing.
    pub wanted: u32,
    /// The lease that ends with this call.
    pub ended: Option<EndedLease>,
}

/// A lease that ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EndedLease {
    pub id: u64,
    /// How many of its units were spent. The others are given back.
    pub spent: u32,
    pub unspent: u32,
}
