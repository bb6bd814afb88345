//! Random histories of gateways that take slots of one key in advance: the scripts in a real Redis, and what gateways do with
//! leases. Answers are late or lost, clients hang up, gateways die. There are never more requests in flight than slots, and no
//! slot stays taken for nothing.

use std::array;
use std::num::NonZeroU32;
use std::time::Duration;

use fastrand::Rng;
use proptest::test_runner::Config;
use redis::Value;
use smallvec::smallvec;

use super::changed_scripts::ChangedScripts;
use super::server::Keys;
use crate::rules::decision::{Batch, Charge};
use crate::rules::key::KeyHash;
use crate::rules::limit::Rule;
use crate::store::leases::{AskedLeases, HeldLeases, SpentLeases};
use crate::store::redis::scripts::invocation::Answer;
use crate::store::redis::scripts::{
    DecisionCall, KeySettlement, LeaseQuestions, Purpose, SettlementAction, invocation, return_lease,
};
use crate::words::clock::{Clock, ManualClock, Timestamp};

const SLOTS: u32 = 150;

const RULE: Rule = Rule::Concurrent(NonZeroU32::new(SLOTS).expect("above zero"));

const GATEWAYS: usize = 3;

/// Gateways that break one rule.
struct Mutant {
    rule: &'static str,
    replaced: (&'static str, &'static str),
    /// A slot that a lease has taken back is given back to Redis, too.
    releases_twice: bool,
}

const MUTANTS: [Mutant; 4] = [
    Mutant {
        rule: "slots in advance are taken",
        replaced: ("mine[2] + 1 + (c.more or 0)", "mine[2] + 1"),
        releases_twice: false,
    },
    Mutant {
        rule: "slots in advance are of those that are left",
        replaced: ("(c.cost - c.taken - 1) / 4 / gateways", "c.cost / 4"),
        releases_twice: false,
    },
    Mutant {
        rule: "what was spent of a lease is not given back with it",
        replaced: ("count = count - (c.back or 0)", "count = count - 2 * (c.back or 0)"),
        releases_twice: false,
    },
    Mutant { rule: "a slot that a lease has taken back stays taken", replaced: ("", ""), releases_twice: true },
];

/// An answer on its way.
struct Reply<'g> {
    gateway: usize,
    asked: AskedLeases<'g>,
    answer: Answer,
    holder: u32,
    arrives: Duration,
}

struct World<'g> {
    keys: &'g mut Keys,
    scripts: ChangedScripts,
    random: Rng,
    hand: &'g ManualClock,
    now: Duration,
    key: KeyHash,
    leases: &'g [HeldLeases; GATEWAYS],
    /// The number under which each gateway takes slots.
    holders: [u32; GATEWAYS],
    /// The numbers under which the slots of its requests are held, the oldest first.
    in_flight: [Vec<u32>; GATEWAYS],
    replies: Vec<Reply<'g>>,
    releases_twice: bool,
    /// An answer was lost, or a gateway has died: its slots end with their lease in Redis.
    has_lost_slots: bool,
    /// How many requests began without a call.
    leased: u32,
    /// How many requests too many were in flight.
    over: u32,
}

impl World<'_> {
    /// Load comes and goes, so that slots are taken and free again.
    fn play(&mut self, is_faulty: bool) {
        for step in 0..1200_u32 {
            let span = Duration::from_micros(self.random.u64(1..15_000));
            self.pass(span);
            let gateway = self.random.usize(0..GATEWAYS);
            if is_faulty && self.random.u32(0..200) == 0 {
                self.kill(gateway);
            }
            let begins = if step / 200 % 2 == 0 { 8 } else { 3 };
            if self.random.u32(0..10) < begins {
                self.begin(gateway, is_faulty);
            } else {
                self.end(gateway);
            }
            if self.over > 0 {
                return;
            }
        }
    }

    /// Everything ends. No slot stays taken.
    fn end_all(&mut self) {
        self.pass(Duration::from_secs(1));
        for gateway in 0..GATEWAYS {
            while !self.in_flight[gateway].is_empty() {
                self.end(gateway);
            }
        }
        self.pass(Duration::from_secs(2));
        let mut get = redis::cmd("GET");
        get.arg(self.keys.names().name(self.key));
        let stored = self.keys.send(&get);
        let holders = if let Value::BulkString(bytes) = &stored { bytes.len() / 15 } else { 0 };
        assert!(self.has_lost_slots || holders == 0, "slots stay taken: {stored:?}");
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
        self.hand.set(Timestamp::from_micros(1_000_000_000) + self.now);
        while let Some(place) = self.replies.iter().position(|reply| reply.arrives <= self.now) {
            let reply = self.replies.swap_remove(place);
            self.answered(reply);
        }
        for gateway in 0..GATEWAYS {
            for lease in self.leases[gateway].take_ended() {
                let channel = self.keys.channel();
                let invocation = return_lease(self.keys.names(), &channel, &self.keys.time, &lease);
                self.scripts.run(self.keys, &invocation);
            }
        }
    }

    /// A request comes, and sometimes its client hangs up, or another limit denies it.
    fn begin(&mut self, gateway: usize, is_faulty: bool) {
        let charge = charge(self.key);
        let batch = Batch { charges: smallvec![charge.clone()], ..Batch::default() };
        let spent = SpentLeases::spend(&self.leases[gateway], &batch);
        if spent.is_any() {
            let slots = spent.slots();
            if self.random.u32(0..10) > 0 {
                drop(spent.conclude(Vec::new(), Timestamp::EPOCH));
                self.leased += 1;
                self.in_flight[gateway].push(slots[0].1);
                self.judge();
            }
            return;
        }
        drop(spent);
        let holder = self.holders[gateway];
        let asked = AskedLeases::ask(&self.leases[gateway], &[&charge], holder);
        let nodes = NonZeroU32::new(3).expect("above zero");
        let call = DecisionCall {
            names: self.keys.names(),
            time: &self.keys.time,
            holder,
            charges: &[&charge],
            known: &[],
            leases: Some(LeaseQuestions { nodes, requests: asked.requests() }),
        };
        let invocation = call.invocation(Purpose::Decide);
        let value = self.scripts.run(self.keys, &invocation);
        let answer = invocation::read(&value, &[&charge]).unwrap_or_else(|| panic!("{value:?}"));
        if is_faulty && self.random.u32(0..200) == 0 {
            self.lose_slots(gateway);
            return;
        }
        let late = if self.random.bool() { 0 } else { self.random.u64(0..100_000) };
        let arrives = self.now + Duration::from_micros(late);
        self.replies.push(Reply { gateway, asked, answer, holder, arrives });
        self.pass(Duration::ZERO);
    }

    fn answered(&mut self, reply: Reply<'_>) {
        let Reply { gateway, asked, mut answer, holder, .. } = reply;
        if holder != self.holders[gateway] {
            // It was killed meanwhile.
            return;
        }
        let charge = charge(self.key);
        asked.answered(&[&charge], &mut answer.verdicts, &answer.leased);
        if answer.verdicts[0].charged.is_some() {
            self.in_flight[gateway].push(holder);
            self.judge();
        }
    }

    /// A request ends.
    fn end(&mut self, gateway: usize) {
        if self.in_flight[gateway].is_empty() {
            return;
        }
        let holder = self.in_flight[gateway].remove(0);
        let is_taken_back = self.leases[gateway].take_back_slot(self.key, holder);
        if !is_taken_back || self.releases_twice {
            let action = SettlementAction::Release { holder, slots: 1 };
            self.keys.settle(&[KeySettlement { key: self.key, action }]);
        }
    }

    /// A gateway dies, and another one starts in its place.
    fn kill(&mut self, gateway: usize) {
        drop(self.leases[gateway].take_all());
        self.in_flight[gateway].clear();
        self.lose_slots(gateway);
    }

    fn lose_slots(&mut self, gateway: usize) {
        self.holders[gateway] = self.random.u32(..);
        self.has_lost_slots = true;
    }

    fn judge(&mut self) {
        let all: usize = self.in_flight.iter().map(Vec::len).sum();
        self.over = self.over.max(u32::try_from(all).expect("few").saturating_sub(SLOTS));
    }
}

fn charge(key: KeyHash) -> Charge<'static> {
    Charge { leases: true, ..Charge::new(0, key, &RULE) }
}

/// Plays so many histories. Returns how many requests too many were in flight, and how many began without a call.
fn play(histories: u64, mutant: Option<&Mutant>) -> (u32, u32) {
    let mut keys = Keys::new();
    let mut began = 0;
    for seed in 0..histories {
        let hand = ManualClock::at(Timestamp::from_micros(1_000_000_000));
        let leases = array::from_fn(|_| HeldLeases::new(Clock::Manual(hand.clone()), true));
        let mut random = Rng::with_seed(seed ^ 0x9e37_79b9);
        let mut world = World {
            keys: &mut keys,
            scripts: ChangedScripts::new(mutant.map(|mutant| mutant.replaced).filter(|(before, _)| !before.is_empty())),
            hand: &hand,
            now: Duration::ZERO,
            key: KeyHash(u128::from(seed) << 1 | u128::from(mutant.is_some())),
            leases: &leases,
            holders: array::from_fn(|_| random.u32(..)),
            in_flight: array::from_fn(|_| Vec::new()),
            replies: Vec::new(),
            releases_twice: mutant.is_some_and(|mutant| mutant.releases_twice),
            random,
            has_lost_slots: false,
            leased: 0,
            over: 0,
        };
        world.play(seed % 2 == 1);
        began += world.leased;
        let over = world.over;
        if over > 0 {
            assert!(mutant.is_some(), "seed {seed}: {over} requests too many were in flight");
            return (over, began);
        }
        if mutant.is_none() {
            world.end_all();
        }
    }
    (0, began)
}

#[test]
fn there_are_never_more_requests_in_flight_than_slots() {
    let histories = Config::default().cases / 4;
    let (_, began) = play(histories.into(), None);
    assert!(began > 150 * histories, "only {began} requests began without a call");
}

#[test]
fn each_mutant_lets_too_many_be_in_flight() {
    for mutant in MUTANTS {
        let (over, _) = play(60, Some(&mutant));
        assert!(over > 0, "no history shows that {}", mutant.rule);
    }
}
