//! Decides logged requests by the rules of a configuration, as the gateway decides live requests.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

use super::{AnsweredBy, LeftOut, LogContents, LoggedRequest};
use crate::config::Settings;
use crate::gateway::decide::bans;
use crate::gateway::decide::bans::SuspectedBan;
use crate::gateway::header_kind::SignificantHeaders;
use crate::gateway::stages::Decided;
use crate::record::ObservedOutcome;
use crate::replay::LogFiles;
use crate::replay::contents::leave_out;
use crate::replay::input::{Position, ReadError};
use crate::replay::logged_request::{admitted, append};
use crate::replay::report::{AgainstReport, Differences, ReplayCounts, ReplayReport};
use crate::rules::client::ClientIp;
use crate::rules::decision;
use crate::rules::decision::{Decision, PendingOutcome, Policy, Settlement, Verdicts};
use crate::rules::key::KeyHash;
use crate::rules::limit::Action;
use crate::rules::outcome::Outcome;
use crate::rules::request::{BodyFields, CanonicalHead};
use crate::rules::route::RouteId;
use crate::store;
use crate::store::{AnyStore, MemoryStore, MovableStore};
use crate::wire::head::Fields;
use crate::words::clock::{Clock, ManualClock, Timestamp};

/// More requests than this are not in progress at a time: the answers that end first then end early.
const MOST_DUE: usize = 100_000;

/// The rules of one configuration, with counts in memory and the time of a log.
#[derive(Debug)]
pub struct Simulation {
    policy: Policy,
    significant_headers: SignificantHeaders,
    /// Whether the logged answers decide the outcome, by `RouteId`; if not, the log has the outcome itself.
    decided_by_answers: Vec<bool>,
    store: Arc<AnyStore>,
    clock: ManualClock,
    /// Later events: answers end, and bans begin when it is certain that a limit was reached.
    due: BinaryHeap<Due>,
    number: u64,
}

/// The simulated decision on a request.
#[derive(Debug)]
pub struct SimulatedDecision {
    /// When it was decided: when the request began, or later where its line came late.
    pub at: Timestamp,
    pub record: Decided,
    /// How many bans began.
    pub new_bans: usize,
    /// An outcome is counted that the log does not tell.
    pub has_unknown_outcome: bool,
}

impl Simulation {
    /// A simulation with the rules of `settings` that the log has enough data for, and the rules that were left out.
    pub fn new(settings: Settings, contents: &LogContents) -> (Self, Vec<LeftOut>) {
        let Settings { mut policy, clients, store: store::StoreSettings { memory, .. }, .. } = settings;
        let left_out = leave_out(&mut policy, contents);
        let decided_by_answers = policy.routes.all().iter().map(|route| contents.decides(route)).collect();
        let significant_headers = SignificantHeaders::new(&policy, &clients);
        let clock = ManualClock::at(Timestamp::EPOCH);
        let memory = store::memory::MemorySettings { snapshot: None, ..memory };
        let store = Arc::new(AnyStore::Memory(Arc::new(MovableStore::from(MemoryStore::new(
            &memory,
            Clock::Manual(clock.clone()),
        )))));
        let simulation =
            Self { policy, significant_headers, decided_by_answers, store, clock, due: BinaryHeap::new(), number: 0 };
        (simulation, left_out)
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides the next request. `None`: the gateway refuses it before any rule, as malformed.
    pub fn decide(&mut self, request: &LoggedRequest) -> Option<SimulatedDecision> {
        let head = admitted(request, &self.significant_headers, self.policy.challenges())?;
        self.advance(request.started);
        let (policy, store, now) = (&self.policy, &*self.store, self.clock.now());
        let head = CanonicalHead::read(&head, ClientIp::new(request.client));
        let mut entry = decision::enter(policy, &head);
        let mut plan = entry.plan(BodyFields::NONE, &store.hasher());
        if store.bans().has_keys() {
            ready(bans::apply(&mut plan, store));
        }
        let mut verdicts = Verdicts::new();
        store.decide_here(plan.batch(), &mut verdicts);
        let decision = plan.conclude(&verdicts);
        let (mut suspected, mut new_bans) = (Vec::new(), 0);
        let (record, slots, pending, passes_at) = match decision {
            Decision::Pass(mut pass) => {
                let passes_at = now + pass.delay.map_or(Duration::ZERO, |(_, span)| span);
                let (slots, pending) = (mem::take(&mut pass.slots), pass.pending.take());
                (Decided::of_pass(&mut pass, None, None, Duration::ZERO), slots, pending, Some(passes_at))
            }
            Decision::Deny(mut denial) => {
                if !denial.new_bans.is_empty() {
                    denial = ready(bans::begin(denial, policy, &plan, store, |ban| suspected.push(ban)));
                    new_bans = denial.new_bans.len();
                }
                let (slots, pending) = (mem::take(&mut denial.slots), denial.pending.take());
                (Decided::of_denial(&mut denial, None, None, None, Duration::ZERO), slots, pending, None)
            }
        };
        drop(plan);
        let outcome = match (&pending, passes_at) {
            (Some(pending), Some(_)) => self.outcome(pending.route, request),
            // A denied request does not reach the application.
            _ => Some(Outcome::Neither),
        };
        let has_unknown_outcome = pending.is_some() && outcome.is_none();
        let ends = passes_at.map_or(now, |passes_at| passes_at + request.duration.unwrap_or_default());
        for ban in suspected {
            self.suspect(ban, now);
        }
        if pending.is_some() || !slots.is_empty() {
            self.later(ends, DueEvent::Answer { pending, outcome, slots });
        }
        // Requests that have ended are settled before the next request of the same moment.
        self.run_due(now);
        Some(SimulatedDecision { at: now, record, new_bans, has_unknown_outcome })
    }

    /// Settles what ends until `moment`, and sets the clock. Time never runs backwards.
    fn advance(&mut self, moment: Timestamp) {
        self.run_due(moment);
        self.clock.set(moment.max(self.clock.now()));
    }

    fn run_due(&mut self, moment: Timestamp) {
        while self.due.peek().is_some_and(|due| due.at <= moment || self.due.len() > MOST_DUE) {
            let Some(due) = self.due.pop() else { break };
            self.clock.set(due.at.min(moment).max(self.clock.now()));
            match due.event {
                DueEvent::Answer { pending, outcome, slots } => {
                    let mut settlements: SmallVec<[Settlement<'_>; 4]> = match &pending {
                        Some(pending) => pending.settlements(&self.policy, outcome),
                        None => SmallVec::new(),
                    };
                    settlements.extend(slots.into_iter().map(Settlement::Release));
                    self.store.settle_here(&settlements);
                }
                DueEvent::CheckBan { suspected, pause, waited } => self.check_ban(suspected, pause, waited),
            }
        }
    }

    fn later(&mut self, at: Timestamp, event: DueEvent) {
        self.number += 1;
        self.due.push(Due { at, number: self.number, event });
    }

    /// A ban that begins if its limit is still full when the requests in progress have been settled.
    fn suspect(&mut self, suspected: SuspectedBan, now: Timestamp) {
        if self.store.bans().claim_check(suspected.subject.id()) {
            let pause = bans::SHORTEST;
            let event = DueEvent::CheckBan { suspected: Box::new(suspected), pause, waited: pause };
            self.later(now + pause, event);
        }
    }

    fn check_ban(&mut self, suspected: Box<SuspectedBan>, pause: Duration, waited: Duration) {
        let (store, now) = (Arc::clone(&self.store), self.clock.now());
        if ready(store.is_unsettled(suspected.key)) && waited < bans::PATIENCE {
            let pause = (pause * 2).min(bans::LONGEST);
            self.later(now + pause, DueEvent::CheckBan { suspected, pause, waited: waited + pause });
            return;
        }
        let id = suspected.subject.id();
        let limit = self.policy.limit(suspected.limit);
        if let Action::Ban(ladder) = &limit.then.action
            && ready(bans::is_full(limit, suspected.key, &store))
        {
            ready(store.ban_by_limit(suspected.subject, ladder, &bans::reason(limit, &[])));
        }
        store.bans().release_check(id);
    }

    /// The outcome of the logged answer. `None`: the log does not show it.
    fn outcome(&self, route: RouteId, request: &LoggedRequest) -> Option<Outcome> {
        match (request.answered_by, request.status) {
            (AnsweredBy::NoApplication, _) => Some(Outcome::Neither),
            (AnsweredBy::Application, Some(status)) => {
                let rule = self.policy.routes.get(route).outcome.as_ref()?;
                if !self.decided_by_answers[usize::from(route.0)] {
                    return request.outcome.and_then(ObservedOutcome::outcome);
                }
                let mut fields = Fields::default();
                append(&mut fields, &request.answer_headers);
                rule.of_head(status, &fields, request.started)
            }
            _ => None,
        }
    }
}

/// The memory store never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the counts are in the memory of this process"),
    }
}

// Later events of a simulation.

/// An event of a simulation. In a heap the earliest comes first; of the same moment, the one that was put in first.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) number: u64,
    pub(super) event: DueEvent,
}

#[derive(Debug)]
pub(super) enum DueEvent {
    /// A request ends. `outcome` is `None` where it is unknown.
    Answer { pending: Option<Box<PendingOutcome>>, outcome: Option<Outcome>, slots: SmallVec<[KeyHash; 2]> },
    /// Looks whether a limit was really reached.
    CheckBan { suspected: Box<SuspectedBan>, pause: Duration, waited: Duration },
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

// Replays the requests of logs under a configuration, and under an older one beside it.

/// In requests.
const PROGRESS_EVERY: u64 = 4096;

/// Replays all requests of `logs` under `settings`, and beside it under the settings `against`. `progress` is called
/// now and then.
pub fn replay(
    mut logs: LogFiles,
    settings: Settings,
    against: Option<Settings>,
    mut progress: impl FnMut(Position),
) -> Result<ReplayReport, ReadError> {
    let contents = logs.contents();
    let clients = settings.clients.clone();
    let (mut simulation, left_out) = Simulation::new(settings, &contents);
    let mut counts = ReplayCounts::new(simulation.policy());
    let mut old = against.map(|settings| {
        let (simulation, left_out) = Simulation::new(settings, &contents);
        let counts = ReplayCounts::new(simulation.policy());
        Old { simulation, left_out, counts, differences: Differences::default() }
    });
    let mut totals = Totals::default();
    while let Some(request) = logs.next_request()? {
        totals.read += 1;
        if totals.read.is_multiple_of(PROGRESS_EVERY) {
            progress(logs.position());
        }
        let Some(decision) = simulation.decide(&request) else {
            totals.refused += 1;
            continue;
        };
        totals.note(decision.at, request.started);
        totals.from_trusted_proxies += u64::from(clients.trusts(ClientIp::new(request.client)));
        totals.unknown_outcomes += u64::from(decision.has_unknown_outcome);
        counts.add(request.client, &decision);
        if let Some(old) = &mut old
            && let Some(before) = old.simulation.decide(&request)
        {
            let (policy, old_policy) = (simulation.policy(), old.simulation.policy());
            old.counts.add(request.client, &before);
            old.differences.add(request.client, (policy, &decision), (old_policy, &before));
        }
    }
    progress(logs.position());
    Ok(ReplayReport {
        formats: logs.formats(),
        files: logs.len(),
        lines: logs.counts(),
        requests: totals.read - totals.refused,
        refused: totals.refused,
        late: totals.late,
        from_trusted_proxies: totals.from_trusted_proxies,
        unknown_outcomes: totals.unknown_outcomes,
        from: totals.first.map(|first| first.to_string()),
        to: totals.last.map(|last| last.to_string()),
        decisions: counts.decisions(),
        denied: counts.denied(),
        limits: counts.limit_reports(simulation.policy()),
        routes: counts.route_reports(simulation.policy()),
        lists: counts.list_reports(),
        left_out,
        against: old.map(|old| AgainstReport {
            decisions: old.counts.decisions(),
            differences: old.differences.reports(),
            left_out: old.left_out,
        }),
    })
}

/// The older configuration.
struct Old {
    simulation: Simulation,
    left_out: Vec<LeftOut>,
    counts: ReplayCounts,
    differences: Differences,
}

#[derive(Default)]
struct Totals {
    read: u64,
    refused: u64,
    late: u64,
    from_trusted_proxies: u64,
    unknown_outcomes: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Totals {
    fn note(&mut self, at: Timestamp, started: Timestamp) {
        self.late += u64::from(at > started);
        self.first.get_or_insert(at);
        self.last = Some(at);
    }
}
