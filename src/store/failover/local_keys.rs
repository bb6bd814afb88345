//! Batches and known clients under the keys that the tables of this process use.

use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::batch::KnownClientKey;
use crate::store::resets;

/// The batch under the keys of this process.
pub(super) fn to_local_keys<'p>(batch: &Batch<'p>) -> Batch<'p> {
    let charges = batch.charges.iter();
    let charges = charges.map(|charge| Charge { key: resets::local_key(charge.key), ..charge.clone() });
    Batch { charges: charges.collect(), known: batch.known.iter().copied().map(local_client).collect() }
}

/// The client under the key of this process.
pub(super) fn local_client(of: KnownClientKey) -> KnownClientKey {
    KnownClientKey { subject: resets::local_key(of.subject), ..of }
}
