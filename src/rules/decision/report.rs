//! How each limit decided a request: for response headers, the log and metrics.

use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;

use crate::rules::decision::plan::{LimitApplication, apply, with_source};
use crate::rules::decision::{Plan, RoutedRequest};
use crate::rules::key::{DisplayKey, ExtractedKey, Hashers, Key, KeyHash, KeySpec, OperatorKey};
use crate::rules::limit::{ActionSeverity, Limit, LimitId, Rates, Standing};
use crate::rules::request::NotUnderstood;
use crate::words::units::whole_seconds;

/// The limits that a request met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitReports {
    /// Each limit that decided, in the order of the plan.
    pub limits: SmallVec<[LimitReport; 4]>,
    /// The rate with the smallest remaining share of its quota, among the rates that responses may show; if two are
    /// equal, the one that takes longer to recover.
    pub closest: Option<RateReport>,
    /// Why a part that a limit counts is not understood, so that the request also counts under the empty value.
    pub unread: Option<NotUnderstood>,
}

/// How one limit decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitReport {
    pub limit: LimitId,
    pub shadow: bool,
    /// The action of the limit. `None`: it lets the request pass. A shadow limit does not act.
    pub applied: Option<ActionSeverity>,
    /// Responses may show its state: it is known, and the limit does not hide it.
    pub is_shown: bool,
    pub found: FoundKey,
}

/// Whether a request has the whole key of a limit.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum FoundKey {
    #[default]
    Whole,
    /// It lacks a part.
    Lacking,
    /// A name in it does not match the `pattern` of its part.
    Unmatched,
}

/// Where a key stands under one rate of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateReport {
    pub limit: LimitId,
    /// The position of the rate in the limit.
    pub rate: u16,
    pub quota: u32,
    /// In units of the quota.
    pub remaining: u64,
    pub reset: Duration,
}

impl LimitReports {
    /// A limit denies the request and does nothing besides.
    pub fn set_denied(&mut self, limit: LimitId) {
        for report in self.limits.iter_mut().filter(|report| report.limit == limit) {
            report.applied = Some(ActionSeverity::Deny);
        }
    }

    /// Adds how a limit decides on a request, and whether the request has the whole key. `standings`: where the key
    /// with the least left stands; empty if that is unknown.
    pub fn add(
        &mut self,
        id: LimitId,
        limit: &Limit,
        applied: Option<ActionSeverity>,
        found: FoundKey,
        standings: &[Standing],
    ) {
        let shown = limit.shown_rates().filter(|_| !standings.is_empty());
        self.limits.push(LimitReport { limit: id, shadow: limit.shadow, applied, is_shown: shown.is_some(), found });
        for (position, rate) in (0_u16..).zip(shown.map_or(&[][..], Rates::as_slice)) {
            let Some(&Standing { remaining, reset }) = standings.get(usize::from(position)) else { break };
            let rate = RateReport { limit: id, rate: position, quota: rate.count.get(), remaining, reset };
            if self.closest.is_none_or(|best| rate.is_closer_than(best)) {
                self.closest = Some(rate);
            }
        }
    }
}

impl RateReport {
    fn is_closer_than(self, other: Self) -> bool {
        let own = u128::from(self.remaining) * u128::from(other.quota);
        let others = u128::from(other.remaining) * u128::from(self.quota);
        own < others || own == others && whole_seconds(self.reset) > whole_seconds(other.reset)
    }
}

// The readable parts of a plan: its client, and its keys, found by their hashes.

/// A plan whose keys can be shown.
pub trait ShownPlan {
    /// The client as keys and lists see it; `None`: a proxy asks, and names no client.
    fn client(&self) -> Option<IpAddr>;

    /// The keys that the store is asked about, and the limit of each.
    fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)>;

    /// Calls `then` with the key under this limit that hashes to `key`; `None`: there is no such key.
    fn with_key<T>(
        &self,
        hashers: &Hashers,
        limit: LimitId,
        key: KeyHash,
        then: impl FnOnce(&KeySpec, &Key) -> T,
    ) -> Option<T>;

    /// The key under this limit that hashes to `key`, as logs show it.
    fn display_key(&self, hashers: &Hashers, limit: LimitId, key: KeyHash) -> Option<DisplayKey> {
        self.with_key(hashers, limit, key, |spec, key| DisplayKey::of(spec, key, &hashers.shown))
    }

    /// The key as the admin API shows it.
    fn operator_key(&self, hashers: &Hashers, limit: LimitId, key: KeyHash) -> Option<OperatorKey> {
        self.with_key(hashers, limit, key, |spec, key| OperatorKey::of(spec, key, &hashers.shown))
    }
}

impl ShownPlan for Plan<'_, '_> {
    fn client(&self) -> Option<IpAddr> {
        Some(self.entry.head.client.address())
    }

    fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)> {
        self.charges.counted_keys()
    }

    /// Extracts the keys again: a plan keeps no values, and few requests need this.
    fn with_key<T>(
        &self,
        Hashers { counted, .. }: &Hashers,
        limit: LimitId,
        key: KeyHash,
        then: impl FnOnce(&KeySpec, &Key) -> T,
    ) -> Option<T> {
        let &RoutedRequest { policy, head, ref walk, identity, .. } = self.entry;
        let limit = policy.limit(limit);
        with_source(policy, head, self.fields, walk, identity, |source| {
            let Ok(LimitApplication::Counted(extracted)) = apply(policy, limit, source) else { return None };
            let hash = |candidate: &ExtractedKey| counted.counted(&limit.name, &limit.key, &candidate.key);
            let found = extracted.keys.iter().find(|candidate| hash(candidate) == key)?;
            Some(then(&limit.key, &found.key))
        })
    }
}
