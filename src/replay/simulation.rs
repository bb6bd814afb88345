//! Decides logged requests by the rules of a configuration, as the gateway decides those that arrive.

use std::collections::BinaryHeap;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;

use super::AnsweredBy;
use super::LeftOut;
use super::LogContents;
use super::LoggedRequest;
use super::due::Due;
use super::due::DueEvent;
use super::head::admitted;
use super::head::append;
use super::left_out::leave_out;
use crate::client::ClientIp;
use crate::clock::Clock;
use crate::clock::ManualClock;
use crate::clock::Timestamp;
use crate::config::Settings;
use crate::decision;
use crate::decision::Decision;
use crate::decision::Policy;
use crate::decision::Settlement;
use crate::decision::Verdicts;
use crate::gateway::decide::bans;
use crate::gateway::decide::record::DecisionRecord;
use crate::gateway::decide::suspected_bans;
use crate::gateway::decide::suspected_bans::SuspectedBan;
use crate::gateway::forward::significant_headers::SignificantHeaders;
use crate::head::Fields;
use crate::limit::Action;
use crate::outcome::Outcome;
use crate::record::ObservedOutcome;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::route::RouteId;
use crate::store;
use crate::store::AnyStore;
use crate::store::MemoryStore;

/// The rules of one configuration, with counts in memory and the time of a log.
#[derive(Debug)]
pub struct Simulation {
    policy: Policy,
    significant_headers: SignificantHeaders,
    /// Whether the logged answers decide the outcome, by `RouteId`; if not, the log has the outcome itself.
    decided_by_answers: Vec<bool>,
    store: Arc<AnyStore>,
    clock: ManualClock,
    /// What happens later: answers end, and bans begin when it is certain that a limit was reached.
    due: BinaryHeap<Due>,
    number: u64,
}

/// What would have become of a request.
#[derive(Debug)]
pub struct SimulatedDecision {
    /// When it was decided: when the request began, or later where its line came late.
    pub at: Timestamp,
    pub record: DecisionRecord,
    /// How many bans began.
    pub new_bans: usize,
    /// An outcome is counted that the log does not tell.
    pub has_unknown_outcome: bool,
}

impl Simulation {
    /// With the rules of `settings` for which the log holds enough, and what was left out.
    pub fn new(settings: Settings, contents: &LogContents) -> (Self, Vec<LeftOut>) {
        let Settings { mut policy, clients, store: store::Settings { memory, .. }, .. } = settings;
        let left_out = leave_out(&mut policy, contents);
        let decided_by_answers = policy.routes.all().iter().map(|route| contents.decides(route)).collect();
        let significant_headers = SignificantHeaders::new(&policy, &clients);
        let clock = ManualClock::at(Timestamp::EPOCH);
        let memory = store::memory::Settings { snapshot: None, ..memory };
        let store = Arc::new(AnyStore::Memory(Arc::new(MemoryStore::new(&memory, Clock::Manual(clock.clone())))));
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
        let head = RequestHead::read(&head, ClientIp::new(request.client));
        let mut plan = decision::enter(policy, &head).plan(BodyFields::NONE, &store.hasher());
        if store.bans().has_keys() {
            plan = ready(bans::apply(plan, store));
        }
        let mut verdicts = Verdicts::new();
        store.decide_here(plan.batch(), &mut verdicts);
        let decision = plan.conclude(&verdicts);
        let (mut suspected, mut new_bans) = (Vec::new(), 0);
        let (record, slots, pending, passes_at) = match decision {
            Decision::Pass(mut pass) => {
                let passes_at = now + pass.delay.map_or(Duration::ZERO, |(_, span)| span);
                let (slots, pending) = (mem::take(&mut pass.slots), pass.pending.take());
                (DecisionRecord::of_pass(&mut pass, None, None, Duration::ZERO), slots, pending, Some(passes_at))
            }
            Decision::Deny(mut denial) => {
                if !denial.new_bans.is_empty() {
                    denial = ready(bans::begin(denial, policy, &plan, store, |ban| suspected.push(ban)));
                    new_bans = denial.new_bans.len();
                }
                let (slots, pending) = (mem::take(&mut denial.slots), denial.pending.take());
                (DecisionRecord::of_denial(&mut denial, None, None, None, Duration::ZERO), slots, pending, None)
            }
        };
        drop(plan);
        let outcome = match (&pending, passes_at) {
            (Some(pending), Some(_)) => self.outcome(pending.route, request),
            // What was denied reaches no application.
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
        // What has ended already is settled before the next request of the same moment.
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
            let pause = suspected_bans::SHORTEST;
            let event = DueEvent::CheckBan { suspected: Box::new(suspected), pause, waited: pause };
            self.later(now + pause, event);
        }
    }

    fn check_ban(&mut self, suspected: Box<SuspectedBan>, pause: Duration, waited: Duration) {
        let (store, now) = (Arc::clone(&self.store), self.clock.now());
        if ready(store.is_unsettled(suspected.key)) && waited < suspected_bans::PATIENCE {
            let pause = (pause * 2).min(suspected_bans::LONGEST);
            self.later(now + pause, DueEvent::CheckBan { suspected, pause, waited: waited + pause });
            return;
        }
        let id = suspected.subject.id();
        let limit = self.policy.limit(suspected.limit);
        if let Action::Ban(ladder) = &limit.then.action
            && ready(suspected_bans::is_full(limit, suspected.key, &store))
        {
            ready(store.ban_by_limit(suspected.subject, ladder, suspected_bans::REASON));
        }
        store.bans().release_check(id);
    }

    /// What the logged answer means. `None`: the log does not tell.
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
                rule.of_head(status, &fields)
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

/// More requests than this are not in progress at a time: the answers that end first then end early.
const MOST_DUE: usize = 100_000;
