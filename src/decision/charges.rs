//! What each limit of a plan charges.

use std::time::Duration;

use smallvec::SmallVec;

use super::Batch;
use super::Charge;
use super::FoundKey;
use super::Policy;
use super::batch::Force;
use super::batch::Items;
use crate::key::ExtractedKey;
use crate::key::ExtractedKeys;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::key::Source;
use crate::key::TooManyValues;
use crate::key::extract;
use crate::key::undisputed;
use crate::limit::Action;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Missing;
use crate::limit::Rule;
use crate::list::ListId;
use crate::request::NotUnderstood;

/// The limits that hold for a request, and what they charge.
#[derive(Debug, Default)]
pub(super) struct PlannedCharges<'p> {
    /// Charges name them by their position.
    pub(super) limits: SmallVec<[PlannedLimit; 4]>,
    pub(super) batch: Batch<'p>,
    /// The longest ban of the keys of each limit, for the few requests that have a banned key.
    bans: Vec<PlannedBan>,
    /// Why a part that a limit counts is not understood.
    pub(super) unread: Option<NotUnderstood>,
}

/// A ban that began before the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedBan {
    /// The position of the limit in the plan.
    limit: u16,
    pub(super) left: Duration,
    pub(super) key: KeyHash,
}

/// A limit that holds for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PlannedLimit {
    pub(super) limit: LimitId,
    /// Denies without counting: a part of the key is missing, and the limit says `missing: deny`.
    pub(super) outright: bool,
    /// What the request has of the key.
    pub(super) found: FoundKey,
    /// The application certainly reads the same key, so that a success may reset it.
    pub(super) is_undisputed: bool,
}

/// What one limit makes of one request.
#[derive(Clone, Debug)]
pub(super) enum LimitApplication {
    /// Its `unless` names this list, which holds the client.
    Freed(ListId),
    /// A part of its key is missing, and it says `missing: skip`.
    Skipped,
    /// A part of its key is missing, and it says `missing: deny`. With why it is not understood, if it is there.
    Denied(Option<NotUnderstood>),
    Counted(ExtractedKeys),
}

impl<'p> PlannedCharges<'p> {
    /// Adds a limit that holds for a request.
    pub(super) fn add(
        &mut self,
        policy: &'p Policy,
        id: LimitId,
        source: &Source<'_>,
        hasher: &KeyHasher,
        nonce: u64,
    ) -> Result<(), TooManyValues> {
        let limit = policy.limit(id);
        let ExtractedKeys { keys, unread, .. } = match apply(policy, limit, source) {
            Ok(LimitApplication::Freed(_) | LimitApplication::Skipped) => return Ok(()),
            Ok(LimitApplication::Counted(extracted)) => extracted,
            Ok(LimitApplication::Denied(unread)) => {
                self.unread = self.unread.or(unread);
                self.limits.push(PlannedLimit {
                    limit: id,
                    outright: true,
                    found: FoundKey::Lacking,
                    is_undisputed: false,
                });
                return Ok(());
            }
            // A shadow limit denies nothing, however strange the request is.
            Err(TooManyValues) if limit.shadow => {
                self.limits.push(PlannedLimit {
                    limit: id,
                    outright: true,
                    found: FoundKey::Whole,
                    is_undisputed: false,
                });
                return Ok(());
            }
            Err(too_many) => return Err(too_many),
        };
        self.unread = self.unread.or(unread);
        let mut found = found_key(&keys);
        let items = match self.items(limit, source, hasher, nonce) {
            Ok((items, is_unmatched)) => {
                found = if is_unmatched { FoundKey::Unmatched } else { found };
                items
            }
            Err(TooManyValues) if limit.shadow => return Ok(()),
            Err(too_many) => return Err(too_many),
        };
        let is_undisputed = limit.reset_on.is_some() && undisputed::is_undisputed(&limit.key, source);
        let number = u16::try_from(self.limits.len()).expect("limits are numbered with 16 bits");
        self.limits.push(PlannedLimit { limit: id, outright: false, found, is_undisputed });
        let force = match limit.then.action {
            _ if limit.shadow => Force::Shadow,
            Action::Delay(_) => Force::Delay,
            _ => Force::Binding,
        };
        let count = match limit.rule {
            // A denied request takes no concurrency slot, so `count: attempts` means nothing here.
            Rule::Concurrent(_) => Count::Requests,
            Rule::Rates { .. } | Rule::Distinct(_) => limit.count,
        };
        for found in &keys {
            self.batch.charges.push(Charge {
                limit: number,
                key: hasher.counted(&limit.name, &limit.key, &found.key),
                rule: &limit.rule,
                count,
                force,
                on_failure: limit.on_failure,
                items: if items.is_empty() { Items::new() } else { items.clone() },
                unless_known: limit.unless_known,
                is_free: false,
                leases: limit.may_be_held(),
            });
        }
        Ok(())
    }

    /// The different values that a limit counts, and whether one does not match its pattern. One that is not understood is
    /// new each time.
    fn items(
        &mut self,
        limit: &Limit,
        source: &Source<'_>,
        hasher: &KeyHasher,
        nonce: u64,
    ) -> Result<(Items, bool), TooManyValues> {
        let Some(part) = &limit.distinct else { return Ok((Items::new(), false)) };
        let ExtractedKeys { keys, unread, .. } = extract::distinct(part, source)?;
        self.unread = self.unread.or(unread);
        let is_unread = |found: &ExtractedKey| found.missing && unread.is_some();
        let items = keys.iter().map(|found| if is_unread(found) { nonce } else { hasher.item(&found.key) });
        Ok((items.collect(), keys.iter().any(|found| found.is_unmatched)))
    }

    /// Whether a limit that is not in shadow mode denies without counting.
    pub(super) fn deny_outright(&self, policy: &Policy) -> bool {
        self.limits.iter().any(|planned| planned.outright && !policy.limit(planned.limit).shadow)
    }

    /// Denies banned keys. `left` says for how long a key is still banned.
    pub(super) fn apply_bans(&mut self, left: impl Fn(KeyHash) -> Option<Duration>) {
        for charge in &self.batch.charges {
            if let Some(left) = ban_left(charge, &left) {
                self.bans.push(PlannedBan { limit: charge.limit, left, key: charge.key });
            }
        }
        if !self.bans.is_empty() {
            self.keep_charges_of_denied();
        }
    }

    /// The longest ban of the keys of the limit at this position.
    pub(super) fn ban_of(&self, number: usize) -> Option<PlannedBan> {
        let bans = self.bans.iter().filter(|ban| usize::from(ban.limit) == number);
        bans.max_by_key(|ban| (ban.left, ban.key)).copied()
    }

    /// For how long this key is still banned.
    pub(super) fn ban_left(&self, key: KeyHash) -> Option<Duration> {
        self.bans.iter().find(|ban| ban.key == key).map(|ban| ban.left)
    }

    /// The keys that the store is asked about, and the limit of each.
    pub(super) fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)> {
        let limit = |number: u16| self.limits[usize::from(number)].limit;
        self.batch.charges.iter().map(move |charge| (limit(charge.limit), charge.key))
    }

    /// Keeps only the charges of a denied request: attempts, and those of shadow limits.
    pub(super) fn keep_charges_of_denied(&mut self) {
        self.batch.charges.retain(|charge| charge.force == Force::Shadow || charge.count == Count::Attempts);
    }
}

/// What a request has of a key.
fn found_key(keys: &[ExtractedKey]) -> FoundKey {
    if keys.iter().all(|key| key.missing) {
        FoundKey::Lacking
    } else if keys.iter().any(|key| key.is_unmatched) {
        FoundKey::Unmatched
    } else {
        FoundKey::Whole
    }
}

/// For how long the key of a charge is still banned. A shadow limit never bans.
pub(super) fn ban_left(charge: &Charge<'_>, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Duration> {
    if charge.force == Force::Shadow { None } else { left(charge.key) }
}

/// What a limit makes of a request. Fails only where the client sent a field too often.
pub(super) fn apply(policy: &Policy, limit: &Limit, source: &Source<'_>) -> Result<LimitApplication, TooManyValues> {
    if let Some(list) = policy.holding(&limit.unless, source) {
        return Ok(LimitApplication::Freed(list));
    }
    let mut extracted = extract::keys(&limit.key, source)?;
    Ok(match limit.missing {
        Missing::Deny if extracted.absent => LimitApplication::Denied(extracted.unread),
        Missing::Count | Missing::Deny => LimitApplication::Counted(extracted),
        // A key with an empty value does not hide the other keys, and what is not understood is not missing.
        Missing::Skip => {
            extracted.keys.retain(|candidate| !candidate.surely_missing);
            if extracted.keys.is_empty() { LimitApplication::Skipped } else { LimitApplication::Counted(extracted) }
        }
    })
}
