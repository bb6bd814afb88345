//! One history.

use std::num::NonZeroU32;
use std::time::Duration;

use fastrand::Rng;
use redis::Value;
use smallvec::smallvec;

use super::gateway::Gateway;
use super::judge::Judge;
use super::mutants::{Deadline, Mutant};
use crate::rules::decision::{Batch, Charge};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Rule};
use crate::store::leases::{AskedLeases, LEASE_SPAN, ReturnedLease, SpentLeases};
use crate::store::redis::scripts::tests::changed_scripts::ChangedScripts;
use crate::store::redis::scripts::tests::server::Keys;
use crate::store::redis::scripts::{
    DecisionCall, KeySettlement, LeaseQuestions, Purpose, SettlementAction, invocation, return_lease,
};
use crate::words::clock::Timestamp;

/// Thirty requests a minute and, in some histories, fewer than thrice that in three minutes.
const RATES: [&str; 2] = ["1200/minute", "1200/minute; 2400 per 3 minutes"];

const COST: NonZeroU32 = NonZeroU32::new(40).expect("above zero");

const WINDOW: Duration = Duration::from_secs(60);

/// How many gateways there are at a time, and how many may die.
const ALIVE: usize = 3;

pub(super) const LIVES: usize = 8;

/// What becomes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Arrives,
    /// It is never carried out.
    Lost,
    /// It is carried out, and nobody hears of it.
    AnswerLost,
}

/// A call on its way: to Redis until it has an answer, then back.
struct Call<'g> {
    gateway: usize,
    asked: AskedLeases<'g>,
    fate: Fate,
    arrives: Duration,
    returns: Duration,
    answer: Option<invocation::Answer>,
}

/// A lease on its way back.
struct Return {
    lease: ReturnedLease,
    arrives: Duration,
}

pub(super) struct World<'g> {
    keys: &'g mut Keys,
    random: Rng,
    gateways: &'g [Gateway],
    alive: [usize; ALIVE],
    /// Most clients use this one.
    favourite: usize,
    born: usize,
    begin: Timestamp,
    now: Duration,
    key: KeyHash,
    rule: Rule,
    calls: Vec<Call<'g>>,
    returns: Vec<Return>,
    mutant: Option<&'static Mutant>,
    /// Of so many messages one is lost, and the answer of another one.
    arriving: u32,
    scripts: ChangedScripts,
    /// What was admitted since the last reset.
    judge: Judge,
    /// When requests were paid by leases in this burst.
    spent: Vec<Duration>,
    /// When the last lease of each gateway ends by the clock of Redis.
    ends: [Duration; LIVES],
    /// A request was denied in this burst.
    is_full: bool,
    /// How many units a window has seen too many.
    pub(super) over: u32,
    /// How many requests passed by leases.
    pub(super) leased: u32,
}

impl<'g> World<'g> {
    pub(super) fn new(
        seed: u64,
        algorithm: Algorithm,
        keys: &'g mut Keys,
        gateways: &'g [Gateway],
        mutant: Option<&'static Mutant>,
    ) -> Self {
        let rates = RATES[usize::from(seed.is_multiple_of(7))].parse().expect("rates");
        let rule = Rule::Rates { algorithm, rates, cost: COST };
        let mut replaced: Vec<_> = mutant.map_or(&[][..], |mutant| mutant.replaced).to_vec();
        if !seed.is_multiple_of(4) {
            // Leases take all that is left.
            replaced.insert(0, (" / 4 / gateways", ""));
        }
        let is_token_bucket = matches!(algorithm, Algorithm::TokenBucket { .. });
        if (!seed.is_multiple_of(2) || mutant.is_some_and(Mutant::is_late)) && !is_token_bucket {
            // Leases that were not given back count until they have ended and a window more, and are not charged meanwhile, which
            // is longer. A token bucket has to charge them, so that they leak.
            replaced.insert(0, ("ends + grace <= now", "(ends <= begin or grace == 0 and ends <= now)"));
        }
        let begin = Timestamp::from_micros(20_513 * 86_400_000_000);
        keys.hand.set(begin);
        Self {
            keys,
            random: Rng::with_seed(seed ^ 0x5bd1_e995),
            gateways,
            alive: std::array::from_fn(|place| place),
            favourite: 0,
            born: ALIVE,
            begin,
            now: Duration::ZERO,
            key: KeyHash(u128::from(seed) << 1 | u128::from(mutant.is_some())),
            judge: Judge::of(&rule),
            rule,
            calls: Vec::new(),
            returns: Vec::new(),
            mutant,
            arriving: if seed.is_multiple_of(3) { 5 } else { 40 },
            scripts: ChangedScripts::new(replaced),
            spent: Vec::new(),
            ends: [Duration::ZERO; LIVES],
            is_full: false,
            over: 0,
            leased: 0,
        }
    }

    /// Twice a burst of requests that uses up the rate, and a window later another one: requests come just before those that
    /// were paid by leases are a window old.
    pub(super) fn play(&mut self) {
        for _ in 0..2 {
            self.burst(180);
            let spent = std::mem::take(&mut self.spent);
            let sooner = Duration::from_micros(self.random.u64(0..1_500_000));
            let last = spent.last().copied().unwrap_or(self.now);
            self.leap((last + WINDOW).saturating_sub(sooner));
            self.burst(20);
            for moment in spent {
                let most = if self.random.bool() { 2000 } else { 50_000 };
                let before = Duration::from_micros(self.random.u64(1..most));
                self.leap((moment + WINDOW).saturating_sub(before));
            }
            let pause = Duration::from_micros(self.random.u64(0..70_000_000));
            self.leap(self.now + pause);
        }
    }

    /// Requests that come `most` ms after another, until the rate is used up and some more.
    fn burst(&mut self, most: u64) {
        self.is_full = false;
        for _ in 0..45 {
            let mut span = Duration::from_micros(self.random.u64(1000..most * 1000));
            if self.random.u32(0..8) == 0 {
                // Until the lease of the gateway that most clients use has just ended.
                let ends = self.ends[self.alive[self.favourite]] + Duration::from_micros(self.random.u64(0..30_000));
                span = ends.checked_sub(self.now).unwrap_or(span);
            }
            self.step(span);
            if self.over > 0 || self.is_full && self.random.u32(0..10) == 0 {
                return;
            }
        }
    }

    /// A request comes at a moment, unless it is over.
    fn leap(&mut self, moment: Duration) {
        if moment > self.now && self.over == 0 {
            self.step(moment.saturating_sub(self.now));
        }
    }

    fn step(&mut self, span: Duration) {
        self.pass(span);
        match self.random.u32(0..300) {
            0 => self.kill(),
            1..5 => self.reset(),
            _ => {}
        }
        if self.random.u32(0..12) == 0 {
            self.favourite = self.random.usize(0..ALIVE);
        }
        let place = if self.random.u32(0..4) > 0 { self.favourite } else { self.random.usize(0..ALIVE) };
        self.request(self.alive[place]);
        for gateway in self.alive {
            self.give_back(gateway);
        }
    }

    fn pass(&mut self, span: Duration) {
        self.pass_until(self.now + span);
    }

    /// Lets time pass, and messages arrive meanwhile.
    fn pass_until(&mut self, until: Duration) {
        loop {
            let call = (0..self.calls.len()).min_by_key(|call| self.calls[*call].due());
            let back = (0..self.returns.len()).min_by_key(|back| self.returns[*back].arrives);
            let at_call = call.map_or(Duration::MAX, |call| self.calls[call].due());
            let at_back = back.map_or(Duration::MAX, |back| self.returns[back].arrives);
            if at_call.min(at_back) > until {
                break;
            }
            self.now = at_call.min(at_back);
            match (call, back) {
                (Some(call), _) if at_call <= at_back => self.go_on(call),
                (_, Some(back)) => {
                    let back = self.returns.swap_remove(back);
                    self.returned(&back.lease);
                }
                _ => {}
            }
        }
        self.now = until;
    }

    /// A client sends a request.
    fn request(&mut self, gateway: usize) {
        let all = self.gateways;
        let here = &all[gateway];
        here.tick(self.now);
        let rule = self.rule.clone();
        let batch = Batch { charges: smallvec![charge(self.key, &rule)], ..Batch::default() };
        let spent = SpentLeases::spend(&here.leases, &batch);
        if spent.is_any() {
            // Sometimes another limit denies it.
            if self.random.u32(0..10) > 0 {
                drop(spent.conclude(Vec::new(), Timestamp::EPOCH));
                self.leased += 1;
                self.spent.push(self.now);
                self.admit();
            }
            return;
        }
        let fate = match self.random.u32(0..self.arriving) {
            0 => Fate::Lost,
            1 => Fate::AnswerLost,
            _ => Fate::Arrives,
        };
        let late = |random: &mut Rng| if random.u32(0..4) > 0 { 0 } else { random.u64(0..400_000) };
        let there = Duration::from_micros(late(&mut self.random));
        let back = Duration::from_micros(late(&mut self.random));
        self.send(gateway, fate, there, back);
    }

    /// A gateway asks Redis.
    fn send(&mut self, gateway: usize, fate: Fate, there: Duration, back: Duration) {
        let rule = self.rule.clone();
        let all = self.gateways;
        let here = &all[gateway];
        match self.mutant.map_or(Deadline::FromSending, |mutant| mutant.deadline) {
            Deadline::FromSending => {}
            Deadline::FromReceiving => here.tick(self.now + there + back),
            Deadline::Late(by) => here.tick(self.now + by),
        }
        let asked = AskedLeases::ask(&here.leases, &[&charge(self.key, &rule)], 0);
        here.tick(self.now);
        let arrives = self.now + there;
        self.calls.push(Call { gateway, asked, fate, arrives, returns: arrives + back, answer: None });
        self.pass(Duration::ZERO);
    }

    /// A lease is spent as late as its holder dares, then the holder dies. Others use up the rate, and ask again when the
    /// lease has ended a window ago by the clock of Redis.
    pub(super) fn spend_at_the_last_moment(&mut self) {
        let [holder, other, _] = self.alive;
        let milli = Duration::from_millis(1);
        // Busy for a second, so that it leases; the answers are late.
        while self.ends[holder].is_zero() {
            self.pass(100 * milli);
            self.has_units(holder);
            self.send(holder, Fate::Arrives, Duration::ZERO, 300 * milli);
        }
        let ends = self.ends[holder];
        self.pass_until(ends.saturating_sub(200 * milli));
        let mut last = None;
        while self.now < ends + 1000 * milli {
            if self.has_units(holder) {
                last = Some(self.now);
            }
            self.pass(milli);
        }
        self.leased += 1;
        self.admit_at(last.expect("it has leased something"));
        self.pass_until((ends + WINDOW).saturating_sub(3000 * milli));
        while !self.is_full {
            self.send(other, Fate::Arrives, Duration::ZERO, Duration::ZERO);
        }
        self.pass_until((ends + WINDOW).saturating_sub(milli));
        while self.over == 0 && self.now < ends + WINDOW + 60 * milli {
            self.pass(milli);
            self.send(other, Fate::Arrives, Duration::ZERO, Duration::ZERO);
        }
    }

    /// Counts a request, and whether a gateway has a lease that would pay for it.
    fn has_units(&mut self, gateway: usize) -> bool {
        self.gateways[gateway].tick(self.now);
        let rule = self.rule.clone();
        let batch = Batch { charges: smallvec![charge(self.key, &rule)], ..Batch::default() };
        SpentLeases::spend(&self.gateways[gateway].leases, &batch).is_any()
    }

    /// A call arrives at Redis or comes back.
    fn go_on(&mut self, place: usize) {
        let rule = self.rule.clone();
        let charge = charge(self.key, &rule);
        let Call { gateway, fate, .. } = self.calls[place];
        if fate == Fate::Lost {
            drop(self.calls.swap_remove(place));
            return;
        }
        if self.calls[place].answer.is_none() {
            self.keys.hand.set(self.begin + self.now);
            let call = DecisionCall {
                names: self.keys.names(),
                time: &self.keys.time,
                holder: 0,
                charges: &[&charge],
                known: &[],
                leases: Some(LeaseQuestions { nodes: NonZeroU32::MIN, requests: self.calls[place].asked.requests() }),
            };
            let invocation = call.invocation(Purpose::Decide);
            let value = self.scripts.run(self.keys, &invocation);
            let answer = invocation::read(&value, &[&charge]).unwrap_or_else(|| panic!("{value:?}"));
            if answer.leased.iter().any(|units| *units > 0) {
                self.ends[gateway] = self.now + LEASE_SPAN;
            }
            if answer.verdicts[0].charged.is_some() && fate == Fate::Arrives {
                self.admit();
            }
            self.is_full |= !answer.verdicts[0].passes();
            self.calls[place].answer = Some(answer);
            return;
        }
        let call = self.calls.swap_remove(place);
        let mut answer = call.answer.expect("Redis has answered");
        if fate == Fate::Arrives && self.alive.contains(&gateway) {
            self.gateways[gateway].tick(self.now);
            call.asked.answered(&[&charge], &mut answer.verdicts, &answer.leased);
        }
    }

    /// Sends leases back that have ended: sometimes in vain, twice, or late.
    fn give_back(&mut self, gateway: usize) {
        self.gateways[gateway].tick(self.now);
        for lease in self.gateways[gateway].leases.take_ended() {
            let times = [0, 1, 1, 1, 2][self.random.usize(0..5)];
            for _ in 0..times {
                let late = Duration::from_micros(self.random.u64(0..1_500_000));
                self.returns.push(Return { lease: lease.clone(), arrives: self.now + late });
            }
        }
    }

    fn returned(&mut self, lease: &ReturnedLease) {
        self.keys.hand.set(self.begin + self.now);
        let channel = self.keys.channel();
        let invocation = return_lease(self.keys.names(), &channel, &self.keys.time, lease);
        let answer = self.scripts.run(self.keys, &invocation);
        assert!(matches!(answer, Value::Int(0 | 1)), "{answer:?}");
    }

    /// A gateway dies, and another one starts.
    fn kill(&mut self) {
        if self.born < self.gateways.len() {
            let place = self.random.usize(0..ALIVE);
            self.alive[place] = self.born;
            self.born += 1;
        }
    }

    /// What was admitted before a reset is forgotten.
    fn reset(&mut self) {
        self.keys.hand.set(self.begin + self.now);
        self.keys.settle(&[KeySettlement { key: self.key, action: SettlementAction::Reset }]);
        if self.mutant.is_some_and(|mutant| mutant.reset_drops_leases) {
            self.keys.number(&["DEL", &self.keys.names().leases_name(self.key)]);
        }
        self.judge = Judge::of(&self.rule);
    }

    fn admit(&mut self) {
        self.admit_at(self.now);
    }

    fn admit_at(&mut self, moment: Duration) {
        let mut get = redis::cmd("GET");
        get.arg(self.keys.names().name(self.key));
        let stored = self.keys.send(&get);
        self.over = self.over.max(self.judge.admit(&self.rule, self.begin + moment, &stored));
    }
}

impl Call<'_> {
    fn due(&self) -> Duration {
        if self.answer.is_some() { self.returns } else { self.arrives }
    }
}

fn charge(key: KeyHash, rule: &Rule) -> Charge<'_> {
    Charge { leases: true, ..Charge::new(0, key, rule) }
}
