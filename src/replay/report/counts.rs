//! The counts of a replay.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::gateway::stages::Decider;
use crate::record::DecisionLabel;
use crate::replay::SimulatedDecision;
use crate::rules::decision::Policy;
use crate::rules::limit::ActionSeverity;
use crate::words::clock::Timestamp;

/// The decisions on all requests under one configuration.
#[derive(Clone, Debug, Default)]
pub struct ReplayCounts {
    pub(super) decisions: Decisions,
    /// The requests that were denied in any way.
    pub(super) denied: Tally,
    /// By `LimitId`.
    pub(super) limits: Vec<LimitCounts>,
    /// First requests without a route, then by `RouteId`.
    pub(super) routes: Vec<Decisions>,
    /// Denials by lists of `access`, by name.
    pub(super) lists: BTreeMap<Arc<str>, Tally>,
}

/// The decisions of a limit on the requests that it met.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitCounts {
    pub(super) met: u64,
    pub(super) decisions: Decisions,
    pub(super) shadow_denied: u64,
    /// The requests that it acted on, in shadow mode too.
    pub(super) tally: Tally,
}

impl ReplayCounts {
    pub fn new(policy: &Policy) -> Self {
        Self {
            limits: vec![LimitCounts::default(); policy.limits.len()],
            routes: vec![Decisions::default(); policy.routes.all().len() + 1],
            ..Self::default()
        }
    }

    pub fn add(&mut self, client: IpAddr, decision: &SimulatedDecision) {
        let SimulatedDecision { at, record, .. } = decision;
        self.decisions.add(record.label);
        self.routes[record.route.map_or(0, |route| usize::from(route.0) + 1)].add(record.label);
        let is_denied = !record.label.passes();
        if is_denied {
            self.denied.add(*at, client);
        }
        if let Decider::List(list) = &record.decider {
            self.lists.entry(Arc::clone(list)).or_default().add(*at, client);
        }
        for report in &record.report.limits {
            let counts = &mut self.limits[usize::from(report.limit.0)];
            counts.met += 1;
            let Some(applied) = report.applied else { continue };
            if report.shadow {
                counts.shadow_denied += 1;
                counts.tally.add(*at, client);
                continue;
            }
            let is_decider = matches!(record.decider, Decider::Limit(limit) if limit == report.limit);
            let label = match applied {
                _ if is_decider => record.label,
                // It delays nothing that another limit denies.
                ActionSeverity::Delay if is_denied => continue,
                action => DecisionLabel::of_action(action),
            };
            counts.decisions.add(label);
            counts.tally.add(*at, client);
        }
    }
}

// Requests counted by decision.

/// How many requests had each decision. As JSON, an object with the decisions that occurred.
#[derive(Clone, Debug, Default)]
pub struct Decisions([u64; DecisionLabel::ALL.len()]);

impl Decisions {
    pub fn add(&mut self, label: DecisionLabel) {
        self.0[place(label)] += 1;
    }

    pub fn of(&self, label: DecisionLabel) -> u64 {
        self.0[place(label)]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The decisions that occurred, in the order of the labels.
    pub fn all(&self) -> impl Iterator<Item = (DecisionLabel, u64)> {
        DecisionLabel::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl Serialize for Decisions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.all().map(|(label, count)| (label.as_str(), count)))
    }
}

fn place(label: DecisionLabel) -> usize {
    DecisionLabel::ALL.iter().position(|known| *known == label).expect("all labels are there")
}

// How often something happened, to which clients, and the worst minute.

/// In microseconds.
const MINUTE: u64 = 60_000_000;

const TOP: usize = 5;

/// How often something happened. Moments must not run backwards.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub count: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The number of a minute since 1970, and how often it happened then.
    minute: (u64, u64),
    worst: (u64, u64),
    clients: BusiestClients,
}

/// A tally as it is printed. Times are in RFC 3339, in UTC.
#[derive(Clone, Debug, Serialize)]
pub struct TallyReport {
    pub count: u64,
    /// How many clients it happened to. Where that is not exact it is at least this many.
    pub clients: usize,
    pub clients_are_exact: bool,
    /// The five clients to which it happened most.
    pub top: Vec<ClientCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The minute in which it happened most often, and how often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_minute: Option<WorstMinute>,
}

#[derive(Clone, Debug, Serialize)]
pub struct WorstMinute {
    pub from: String,
    pub count: u64,
}

impl Tally {
    pub fn add(&mut self, at: Timestamp, client: IpAddr) {
        self.count += 1;
        self.first.get_or_insert(at);
        self.last = Some(at);
        let minute = at.as_micros() / MINUTE;
        if self.minute.0 != minute {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        if self.minute.1 > self.worst.1 {
            self.worst = self.minute;
        }
        self.clients.add(client);
    }

    pub fn report(&self) -> TallyReport {
        let (minute, count) = self.worst;
        let from = Timestamp::from_micros(minute * MINUTE).to_string();
        TallyReport {
            count: self.count,
            clients: self.clients.len(),
            clients_are_exact: self.clients.is_exact(),
            top: self.clients.top(TOP),
            first: self.first.map(|first| first.to_string()),
            last: self.last.map(|last| last.to_string()),
            worst_minute: (count > 0).then_some(WorstMinute { from, count }),
        }
    }
}

// The clients that something happened to most often, in bounded memory.

/// The most clients that are counted for one limit.
const MOST_CLIENTS: usize = 20_000;

/// Counts clients. Few clients are counted exactly. Beyond [`MOST_CLIENTS`] the clients with the lowest counts are
/// dropped, so that a count may be too low by at most `forgotten`.
#[derive(Clone, Debug, Default)]
pub struct BusiestClients {
    counts: HashMap<IpAddr, u64>,
    /// The highest count of a client that was forgotten, over all times that clients were.
    forgotten: u64,
}

/// A client and how often.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ClientCount {
    pub client: IpAddr,
    pub count: u64,
}

impl BusiestClients {
    pub fn add(&mut self, client: IpAddr) {
        *self.counts.entry(client).or_default() += 1;
        if self.counts.len() > MOST_CLIENTS {
            self.forget_half();
        }
    }

    /// The busiest first, then by address.
    pub fn top(&self, most: usize) -> Vec<ClientCount> {
        let mut all: Vec<_> = self.counts.iter().map(|(&client, &count)| ClientCount { client, count }).collect();
        all.sort_by_key(|one| (std::cmp::Reverse(one.count), one.client));
        all.truncate(most);
        all
    }

    /// How many clients are counted: all of them, unless some were forgotten.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether every client is counted from its first time on.
    pub fn is_exact(&self) -> bool {
        self.forgotten == 0
    }

    fn forget_half(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let (_, &mut median, _) = counts.select_nth_unstable(MOST_CLIENTS / 2);
        self.counts.retain(|_, count| *count > median);
        self.forgotten += median;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_busiest_are_found_in_bounded_memory_among_many_that_come_once() {
        let mut clients = BusiestClients::default();
        let busy = |number: u32| IpAddr::from(Ipv4Addr::from(0xc000_0200 + number));
        for number in 0..200_000_u32 {
            clients.add(IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)));
            (0..4).for_each(|one| clients.add(busy(one)));
        }
        assert!(clients.len() <= MOST_CLIENTS);
        assert!(!clients.is_exact());
        let top = clients.top(4);
        assert_eq!(top.iter().map(|one| one.client).collect::<Vec<_>>(), [0, 1, 2, 3].map(busy));
        assert!(top.iter().all(|one| one.count + clients.forgotten >= 200_000 && one.count <= 200_000), "{top:?}");
    }

    #[test]
    fn the_first_moment_and_the_worst_minute_are_named() {
        let mut tally = Tally::default();
        for seconds in [59, 60, 61, 119, 120, 240] {
            tally.add(Timestamp::from_micros(seconds * 1_000_000), Ipv4Addr::LOCALHOST.into());
        }
        let report = tally.report();
        assert_eq!(report.first.as_deref(), Some("1970-01-01T00:00:59.000Z"));
        let worst = report.worst_minute.unwrap();
        assert_eq!((worst.from.as_str(), worst.count), ("1970-01-01T00:01:00.000Z", 3));
        assert_eq!((report.count, report.clients), (6, 1));
    }
}
