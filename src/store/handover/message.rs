//! What a predecessor asks, and what its successor answers.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::OwnedBatch;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::decision::batch::KnownClientKey;
use crate::decision::batch::Ledger;
use crate::decision::ticket::Ticket;
use crate::key::KeyHash;
use crate::limit::Ladder;
use crate::limit::Rule;
use crate::limit::Standings;
use crate::store::bans::BanId;
use crate::store::bans::shared::Written;

/// A question, and the number by which its answer is known.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) question: Question,
}

#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) enum Question {
    Decide(OwnedBatch),
    Look(OwnedBatch),
    Settle(Vec<OwnedSettlement>),
    /// A limit that bans was reached. `subject` is a ban of that subject, of which nothing else counts.
    Trip {
        subject: Written,
        client: Option<IpAddr>,
        ladder: Ladder,
    },
    Ban {
        subject: Written,
        client: Option<IpAddr>,
        span: Duration,
    },
    Lift(BanId),
    IsUnsettled(KeyHash),
    /// The predecessor accepts no more connections.
    Draining,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Answered {
    pub(super) number: u64,
    pub(super) answer: Answer,
}

#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) enum Answer {
    Done,
    Verdicts(Vec<OwnedVerdict>),
    /// The ban that holds; `None`: there is no such ban, or no room for one.
    Ban(Option<Written>),
    Unsettled(bool),
    /// These bans hold, which nobody asked for.
    Banned(Vec<Written>),
}

/// The number of an answer that nobody asked for.
pub(super) const NOBODY: u64 = 0;

/// As a [`Settlement`], with a rule of its own.
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) enum OwnedSettlement {
    Release(KeyHash),
    TakeBack { key: KeyHash, rule: Rule, charged: OwnedCharged },
    Keep { key: KeyHash, rule: Rule, items: Items, charged: OwnedCharged },
    Charge { key: KeyHash, rule: Rule, items: Items },
    Reset { key: KeyHash, charged: Option<OwnedCharged> },
    Remember { of: KnownClientKey, most: NonZeroU32, keep: Duration },
}

/// As a [`Verdict`].
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) struct OwnedVerdict {
    retry_after: Option<Duration>,
    standings: Standings,
    charged: Option<OwnedCharged>,
    is_exempt: bool,
}

/// As a [`Charged`]. A ticket is known by its key, and by how often that had been reset when it was written.
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) struct OwnedCharged {
    moment: Timestamp,
    fresh: Items,
    resets: Option<u32>,
}

impl OwnedSettlement {
    pub(in crate::store) fn of(settlement: &Settlement<'_>) -> Self {
        match *settlement {
            Settlement::Release(key) => Self::Release(key),
            Settlement::TakeBack { key, rule, charged } => {
                Self::TakeBack { key, rule: rule.clone(), charged: OwnedCharged::of(charged) }
            }
            Settlement::Keep { key, rule, items, charged } => {
                Self::Keep { key, rule: rule.clone(), items: items.clone(), charged: OwnedCharged::of(charged) }
            }
            Settlement::Charge { key, rule, items } => Self::Charge { key, rule: rule.clone(), items: items.clone() },
            Settlement::Reset { key, charged } => Self::Reset { key, charged: charged.map(OwnedCharged::of) },
            Settlement::Remember { of, most, keep } => Self::Remember { of, most, keep },
        }
    }

    /// What gives back all that was taken for a request which nobody waits for any more.
    pub(super) fn undoing(batch: &Batch<'_>, verdicts: Vec<OwnedVerdict>) -> Vec<Self> {
        let charged = batch.charges.iter().zip(verdicts);
        let charged = charged.filter_map(|(charge, verdict)| Some((charge, verdict.charged?)));
        let undone = charged.filter_map(|(charge, charged)| match charge.rule {
            Rule::Concurrent(_) => Some(Self::Release(charge.key)),
            rule if charge.waits_for_outcome() => Some(Self::TakeBack { key: charge.key, rule: rule.clone(), charged }),
            _ => None,
        });
        undone.collect()
    }
}

impl OwnedVerdict {
    pub(super) fn of(verdict: &Verdict) -> Self {
        let Verdict { retry_after, standings, charged, is_exempt } = verdict;
        let charged = charged.as_ref().map(OwnedCharged::of);
        Self { retry_after: *retry_after, standings: standings.clone(), charged, is_exempt: *is_exempt }
    }

    /// `ticket` makes the ticket of a key that was reset so often.
    pub(in crate::store) fn verdict(self, ticket: impl Fn(u32) -> Ticket) -> Verdict {
        let Self { retry_after, standings, charged, is_exempt } = self;
        let charged = charged.map(|charged| charged.charged(|resets| Some(ticket(resets))));
        Verdict { retry_after, standings, charged, is_exempt }
    }
}

impl OwnedCharged {
    fn of(charged: &Charged) -> Self {
        let Charged { moment, fresh, ticket, .. } = charged;
        Self { moment: *moment, fresh: fresh.clone(), resets: ticket.as_ref().map(Ticket::resets) }
    }

    pub(super) fn has_ticket(&self) -> bool {
        self.resets.is_some()
    }

    pub(super) fn charged(self, ticket: impl FnOnce(u32) -> Option<Ticket>) -> Charged {
        let Self { moment, fresh, resets } = self;
        Charged { moment, ledger: Ledger::Local, fresh, ticket: resets.and_then(ticket) }
    }
}
