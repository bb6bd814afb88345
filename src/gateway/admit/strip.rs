//! Removes from the head of a request what neither the rules nor the application may read.

use crate::gateway::decide::challenge::Proofs;
use crate::gateway::forward::headers::strip_connection;
use crate::gateway::forward::significant_headers::SignificantHeaders;
use crate::head::Fields;

/// What the gateway itself needs of the headers that it removed.
#[derive(Debug)]
pub struct Stripped {
    pub asks_for_upgrade: bool,
    pub proofs: Proofs,
}

/// Removes `Connection`, the headers that it names, and the proofs of work. `challenges` says whether any limit
/// challenges: if none does, cookies are not searched.
pub fn strip(fields: &mut Fields, significant_headers: &SignificantHeaders, challenges: bool) -> Stripped {
    let asks_for_upgrade = strip_connection(fields, |name| significant_headers.in_requests(name));
    let proofs = if challenges { Proofs::take(fields) } else { Proofs::default() };
    Stripped { asks_for_upgrade, proofs }
}
