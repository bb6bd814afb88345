//! One history.

use std::time::Duration;

use fastrand::Rng;
use redis::Value;

use super::mutants::Mutant;
use crate::store::parts::{HELD_FOR, HeldPart, NextCall, PartAnswer, PartCall};
use crate::store::redis::scripts::tests::server::Keys;
use crate::store::redis::scripts::{part_answer, part_call, parts_name, text};
use crate::words::clock::{Clock, ManualClock, Timestamp};

pub(super) struct World<'k> {
    keys: &'k mut Keys,
    name: String,
    random: Rng,
    begin: Timestamp,
    now: Duration,
    gateways: Vec<Gateway>,
    calls: Vec<Call>,
    /// The table as it was some time ago.
    copy: Vec<Vec<u8>>,
    born: u32,
    /// Redis answers nobody.
    is_away: bool,
    /// Messages are lost, late, and overtake each other.
    is_faulty: bool,
    /// Until then two gateways may hold the same.
    excused_until: Duration,
    /// From then on a gateway that crashed is known to be silent to all.
    silent_from: Duration,
    mutant: Option<&'static Mutant>,
    /// The script as it is in this world.
    sha: String,
    /// The parts were more than the whole at some moment.
    pub(super) is_over: bool,
}

struct Gateway {
    number: u32,
    clock: ManualClock,
    /// How its clock runs, in millionths of the time of the world.
    pace: u64,
    held: HeldPart,
    /// It does not reach Redis.
    is_cut_off: bool,
    due: Duration,
    /// What it told before it shrank.
    told: Option<u64>,
}

/// A call on its way: to Redis until it has an answer, then back.
struct Call {
    gateway: u32,
    said: PartCall,
    arrives: Duration,
    returns: Duration,
    answer: Option<PartAnswer>,
    is_lost: bool,
    is_answer_lost: bool,
}

impl<'k> World<'k> {
    pub(super) fn new(seed: u64, keys: &'k mut Keys, mutant: Option<&'static Mutant>) -> Self {
        let begin = Timestamp::from_micros(20_513 * 86_400_000_000);
        let name = format!("{}:{seed}:{}", keys.prefix, mutant.map_or("", |mutant| mutant.rule).replace(' ', "-"));
        let sha = load(keys, mutant);
        Self {
            keys,
            name: parts_name(&name),
            random: Rng::with_seed(seed ^ 0x2545_f491),
            begin,
            now: Duration::ZERO,
            gateways: Vec::new(),
            calls: Vec::new(),
            copy: Vec::new(),
            born: 0,
            is_away: false,
            is_faulty: false,
            excused_until: Duration::ZERO,
            silent_from: Duration::ZERO,
            mutant,
            sha,
            is_over: false,
        }
    }

    /// Some scenes, and what must hold after each.
    pub(super) fn play(&mut self) {
        for _ in 0..self.random.usize(1..4) {
            self.start();
        }
        for _ in 0..4 {
            self.scene();
            if self.is_over {
                break;
            }
        }
        self.keys.number(&["DEL", &self.name]);
    }

    fn scene(&mut self) {
        if self.random.bool() {
            let mut read = redis::cmd("HGETALL");
            read.arg(&self.name);
            self.copy = redis::from_redis_value(self.keys.send(&read)).expect("a hash");
        }
        match self.random.u32(0..9) {
            0 | 1 => self.start(),
            2 => self.end(),
            // What a crashed gateway held is used by nobody, and stays reserved.
            3 => {
                drop(self.remove());
                self.silent_from = self.now + SILENT_AFTER;
            }
            4 => self.outage(),
            5 => self.lose_data(),
            6 => self.cut_off_for_long(),
            7 => self.lose_data_unseen(),
            _ => {}
        }
        self.is_faulty = true;
        for _ in 0..self.random.u32(0..20) {
            self.notice();
            // What a rule left out does is seen sooner where more come.
            if self.mutant.is_some() && self.random.u32(0..8) == 0 {
                self.start();
            }
            self.pass(Duration::from_millis(300));
        }
        self.is_faulty = false;
        // Who may have missed a message has subscribed anew.
        self.notice();
        let settled = self.silent_from.max(self.now + SETTLED_AFTER);
        self.pass(settled.saturating_sub(self.now));
        if !self.is_over && self.mutant.is_none() {
            self.assert_settled();
        }
    }

    fn start(&mut self) {
        self.born += 1;
        let clock = ManualClock::at(Timestamp::EPOCH);
        let mark = format!("machine{}-1-1", self.born).parse().expect("a mark");
        let held = HeldPart::new(Clock::Manual(clock.clone()), mark);
        // A thousandth is more than any clock of a machine is wrong by.
        let pace = 999_000 + self.random.u64(0..2000);
        let (number, due) = (self.born, self.now);
        self.gateways.push(Gateway { number, clock, pace, held, is_cut_off: false, due, told: None });
    }

    fn end(&mut self) {
        let Some(gateway) = self.remove() else { return };
        gateway.tick(self.now);
        if let Some(call) = gateway.held.leave() {
            self.send(gateway.number, call);
        }
    }

    fn remove(&mut self) -> Option<Gateway> {
        let place = self.random.usize(0..self.gateways.len().max(1));
        (self.gateways.len() > 1).then(|| self.gateways.swap_remove(place))
    }

    /// Redis is away; meanwhile a gateway may start.
    fn outage(&mut self) {
        self.is_away = true;
        let first = Duration::from_millis(self.random.u64(0..20_000));
        self.pass(first);
        if self.random.bool() {
            self.start();
        }
        self.pass(Duration::from_secs(3));
        self.is_away = false;
        self.notice();
    }

    /// Every gateway that reaches Redis calls soon, because its connection is a new one.
    fn notice(&mut self) {
        for gateway in self.gateways.iter_mut().filter(|gateway| !gateway.is_cut_off) {
            gateway.due = gateway.due.min(self.now + Duration::from_millis(self.random.u64(0..1000)));
        }
    }

    /// Redis is emptied; all gateways reach it in the seconds after that.
    fn lose_data(&mut self) {
        self.calls.clear();
        self.keys.number(&["DEL", &self.name]);
        if self.random.bool() {
            self.restore_old_table();
        }
        if self.random.bool() {
            self.start();
        }
        self.notice();
        self.pass(Duration::from_secs(3));
    }

    /// Another server goes on with what it has, which is older.
    fn restore_old_table(&mut self) {
        let mut restore = redis::cmd("HSET");
        restore.arg(&self.name).arg(&self.copy);
        if !self.copy.is_empty() {
            self.keys.send(&restore);
            self.keys.number(&["HSET", &self.name, "server", "another"]);
            // Gateways that have left since are there again.
            self.silent_from = self.now + SILENT_AFTER;
        }
    }

    /// Redis is emptied while a gateway does not reach it, whose part others may be given. When it is back, it gives that up.
    fn lose_data_unseen(&mut self) {
        let place = self.random.usize(0..self.gateways.len());
        self.gateways[place].is_cut_off = true;
        self.gateways[place].due = self.now + Duration::from_secs(60);
        self.excused_until = self.now + Duration::from_secs(60);
        self.lose_data();
        self.pass(Duration::from_secs(20));
        self.reach_redis();
        self.excused_until = self.now + ANSWERED_WITHIN;
        self.pass(ANSWERED_WITHIN * 2);
    }

    fn reach_redis(&mut self) {
        for gateway in self.gateways.iter_mut().filter(|gateway| gateway.is_cut_off) {
            gateway.is_cut_off = false;
            gateway.due = self.now;
        }
    }

    /// A gateway does not reach Redis for about as long as its part lasts, while another one may want it.
    fn cut_off_for_long(&mut self) {
        let place = self.random.usize(0..self.gateways.len());
        // Its last call may come back late.
        let gateway = &mut self.gateways[place];
        gateway.tick(self.now);
        let (number, call) = (gateway.number, gateway.held.call());
        gateway.is_cut_off = true;
        gateway.due = self.now + HELD_FOR * 2;
        if let Some(call) = call {
            self.send(number, call);
            if let Some(last) = self.calls.last_mut().filter(|_| self.random.bool()) {
                last.returns = last.arrives + Duration::from_secs(300);
            }
        }
        if self.random.bool() {
            self.start();
        }
        self.pass(Duration::from_secs(10));
        // Nobody calls until shortly before its end, as in an outage for all of them.
        let wake = self.now + HELD_FOR.saturating_sub(Duration::from_secs(60));
        self.gateways.iter_mut().for_each(|gateway| gateway.due = gateway.due.max(wake));
        self.pass(wake.saturating_sub(self.now));
        // Then they call now and then, as if others came and went.
        for _ in 0..self.random.u32(1..80) {
            self.notice();
            self.pass(Duration::from_secs(2));
        }
        self.reach_redis();
    }

    /// Lets time pass, and everything happen that is due.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while !self.is_over {
            let due = self.gateways.iter().map(|gateway| gateway.due).chain(self.calls.iter().map(Call::due)).min();
            match due.filter(|due| *due < end) {
                Some(due) => self.now = self.now.max(due),
                None => break,
            }
            self.go_on();
            self.check();
        }
        self.now = end;
        self.check();
    }

    /// What is due now: an arrival, an answer, or a call.
    fn go_on(&mut self) {
        if let Some(place) = self.calls.iter().position(|call| call.due() <= self.now) {
            let call = &self.calls[place];
            if call.answer.is_some() || call.is_lost || self.is_away {
                let call = self.calls.swap_remove(place);
                self.returned(&call);
            } else {
                let answer = self.answer(place);
                self.calls[place].answer = Some(answer);
            }
            return;
        }
        let Some(gateway) = self.gateways.iter_mut().find(|gateway| gateway.due <= self.now) else { return };
        gateway.tick(self.now);
        gateway.due = self.now + CALLS_EVERY;
        let number = gateway.number;
        if let Some(mut call) = gateway.held.call() {
            // The mutant: it tells what is fair, and shrinks with the answer.
            if let Some(told) = gateway.told {
                call.held = call.held.map(|held| held.min(told));
            }
            self.send(number, call);
        }
    }

    fn send(&mut self, gateway: u32, call: PartCall) {
        let odds = if self.is_faulty { 4 } else { u32::MAX };
        let mut late = || match self.random.u32(0..odds) {
            0 => Duration::from_millis(self.random.u64(0..4000)),
            _ => Duration::from_micros(self.random.u64(100..2000)),
        };
        let (there, back) = (late(), late());
        let (is_lost, is_answer_lost) = (self.random.u32(0..odds) == 0, self.random.u32(0..odds) == 0);
        let arrives = self.now + there;
        self.calls.push(Call {
            gateway,
            said: call,
            arrives,
            returns: arrives + back,
            answer: None,
            is_lost,
            is_answer_lost,
        });
    }

    fn answer(&mut self, place: usize) -> PartAnswer {
        self.keys.hand.set(self.begin + self.now);
        let invocation = part_call(&self.name, &self.keys.time, &self.calls[place].said);
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.sha);
        for argument in invocation.command.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        let value = self.keys.send(&command);
        part_answer(&value).unwrap_or_else(|| panic!("{value:?}"))
    }

    fn returned(&mut self, call: &Call) {
        let Some(answer) = call.answer.as_ref().filter(|_| !call.is_answer_lost) else {
            // Whoever gets no answer calls again soon.
            let again = self.now + CALLS_SOON * 2;
            let gateways = self.gateways.iter_mut();
            for gateway in gateways.filter(|gateway| gateway.number == call.gateway && !gateway.is_cut_off) {
                gateway.due = gateway.due.min(again);
            }
            return;
        };
        if answer.has_changed {
            self.publish(call.gateway);
        }
        let Some(gateway) = self.gateways.iter_mut().find(|gateway| gateway.number == call.gateway) else { return };
        gateway.tick(self.now);
        let mut sent = call.said.clone();
        if self.mutant.is_some_and(|mutant| mutant.ends_from_receiving) {
            sent.sent = gateway.clock.now();
        }
        if self.mutant.is_some_and(|mutant| mutant.tells_first) && answer.fair < answer.units && gateway.told.is_none()
        {
            gateway.told = Some(answer.fair);
            gateway.due = gateway.due.min(self.now + CALLS_SOON * 2);
            return;
        }
        gateway.told = None;
        let next = match gateway.held.answered(&sent, answer) {
            NextCall::AtOnce => self.now,
            NextCall::Soon(granted_in) => self.now + CALLS_SOON.max(granted_in),
            NextCall::Later => gateway.due,
        };
        if !gateway.is_cut_off {
            gateway.due = gateway.due.min(next);
        }
    }

    /// Others hear that a gateway comes or goes, unless that is lost.
    fn publish(&mut self, by: u32) {
        for gateway in self.gateways.iter_mut().filter(|gateway| gateway.number != by && !gateway.is_cut_off) {
            if !self.is_faulty || self.random.bool() {
                gateway.due = gateway.due.min(self.now + Duration::from_micros(self.random.u64(100..2000)));
            }
        }
    }

    fn check(&mut self) {
        let now = self.now;
        self.gateways.iter().for_each(|gateway| gateway.tick(now));
        let all: f64 = self.gateways.iter().map(|gateway| gateway.held.now().as_fraction()).sum();
        self.is_over |= all > 1.0 + 1e-12 && self.now >= self.excused_until;
    }

    fn assert_settled(&self) {
        let part = |gateway: &Gateway| gateway.held.now().as_fraction();
        let first = part(&self.gateways[0]);
        let parts: Vec<f64> = self.gateways.iter().map(part).collect();
        assert!(parts.iter().all(|part| (part - first).abs() < 1e-12), "{parts:?} at {:?} of {}", self.now, self.name);
    }
}

impl Gateway {
    /// Its clock goes on to this moment of the world.
    fn tick(&self, now: Duration) {
        let micros = u64::try_from(now.as_micros()).expect("a short history");
        self.clock.set(Timestamp::from_micros(1_000_000_000 + micros * self.pace / 1_000_000));
    }
}

impl Call {
    fn due(&self) -> Duration {
        if self.answer.is_some() { self.returns } else { self.arrives }
    }
}

/// Loads the script as it is in this world.
fn load(keys: &mut Keys, mutant: Option<&'static Mutant>) -> String {
    let mut text = text::parts().text.clone();
    for (before, after) in mutant.map_or(&[][..], |mutant| mutant.replaced) {
        assert!(text.contains(before), "{before}");
        text = text.replace(before, after);
    }
    let mut load = redis::cmd("SCRIPT");
    load.arg("LOAD").arg(&text);
    let Value::BulkString(sha) = keys.send(&load) else { panic!("{text}") };
    String::from_utf8(sha).expect("digits")
}

/// How often a gateway calls.
const CALLS_EVERY: Duration = Duration::from_secs(60);

/// The same while it has less than would be fair.
const CALLS_SOON: Duration = Duration::from_millis(250);

/// Until a gateway has missed two calls, and all others have called then.
const SILENT_AFTER: Duration = Duration::from_secs(220);

/// Where nothing is faulty.
const ANSWERED_WITHIN: Duration = Duration::from_millis(5);

/// All parts are as they should be then.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
