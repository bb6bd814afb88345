//! Whom a limit denied or held, for those who are told of it. Masked here, so that no key in clear goes any further.

use super::Snapshot;
use crate::decision::Denial;
use crate::decision::Pass;
use crate::decision::enter;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::record::Subject;
use crate::request::Fields;
use crate::request::Head;
use crate::store::AnyStore;

/// `None`: no limit denies it, or nobody wants to know.
pub(super) fn of_denial(
    denial: &Denial<'_>,
    live: &Snapshot,
    head: &Head<'_>,
    fields: &Fields,
    store: &AnyStore,
) -> Option<Box<Subject>> {
    let limit = denial.limit?;
    let shown = shown(limit, denial.key, live, head, fields, store)?;
    let is_ban = denial.trips.iter().any(|trip| trip.limit == limit);
    let (key, span, is_suspect) = (denial.key, denial.wait, denial.is_suspect);
    Some(Box::new(Subject { limit, key, shown: shown.0, span, is_ban, is_suspect }))
}

/// The same of a request that is held before it is forwarded.
pub(super) fn of_delay(
    pass: &Pass,
    live: &Snapshot,
    head: &Head<'_>,
    fields: &Fields,
    store: &AnyStore,
) -> Option<Box<Subject>> {
    let (limit, span) = pass.delay?;
    let shown = shown(limit, pass.delayed_key, live, head, fields, store)?;
    let (key, span) = (pass.delayed_key, Some(span));
    Some(Box::new(Subject { limit, key, shown: shown.0, span, is_ban: false, is_suspect: false }))
}

/// A key as people may see it, where there is one.
struct Shown(Option<Vec<(String, String)>>);

fn shown(
    limit: LimitId,
    key: Option<KeyHash>,
    live: &Snapshot,
    head: &Head<'_>,
    fields: &Fields,
    store: &AnyStore,
) -> Option<Shown> {
    if !live.recorder.is_heard(Some(limit)) {
        return None;
    }
    let named = key.and_then(|key| enter(&live.policy, head).named(fields, &store.hasher(), limit, key));
    Some(Shown(named.map(|named| named.masked)))
}
