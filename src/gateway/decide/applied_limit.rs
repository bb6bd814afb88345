//! The limit that denied or held a request, for the request log and for events. The key is masked here, so that no key in
//! clear goes further.

use crate::decision::Denial;
use crate::decision::Pass;
use crate::decision::ShownPlan;
use crate::gateway::snapshot::Snapshot;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::record::AppliedLimit;
use crate::record::MaskedKey;
use crate::store::AnyStore;

/// `None` when no limit denied the request, or when nothing reads it.
pub(in crate::gateway) fn of_denial(
    denial: &Denial,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
) -> Option<Box<AppliedLimit>> {
    let limit = denial.limit.filter(|&limit| live.recorder.needs_key(limit))?;
    let masked_key = denial.key.and_then(|key| masked_key(limit, key, plan, &store.hashers()));
    let is_ban = denial.new_bans.iter().any(|ban| ban.limit == limit);
    let (key, span, is_suspect) = (denial.key, denial.wait, denial.is_suspect);
    Some(Box::new(AppliedLimit { limit, key, masked_key, span, is_ban, is_suspect }))
}

/// The same for a request that is held before it is forwarded.
pub(in crate::gateway) fn of_delay(
    pass: &Pass,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
) -> Option<Box<AppliedLimit>> {
    let (limit, span) = pass.delay.filter(|&(limit, _)| live.recorder.needs_key(limit))?;
    let key = pass.delayed_key;
    let masked_key = key.and_then(|key| masked_key(limit, key, plan, &store.hashers()));
    Some(Box::new(AppliedLimit { limit, key, masked_key, span: Some(span), is_ban: false, is_suspect: false }))
}

fn masked_key(limit: LimitId, key: KeyHash, plan: &impl ShownPlan, hashers: &Hashers) -> Option<MaskedKey> {
    let parts = plan.display_key(hashers, limit, key)?.masked;
    Some(MaskedKey { hash: hashers.shown.rehash(key), parts })
}
