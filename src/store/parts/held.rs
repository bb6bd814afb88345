//! The part that this process holds: when it shrinks, grows and ends.

use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::part::Part;
use super::part::WHOLE;
use super::process_mark::ProcessMark;
use crate::clock::Clock;
use crate::clock::Timestamp;

/// The part of this process, shared by its cores.
#[derive(Debug)]
pub struct HeldPart {
    clock: Clock,
    mark: ProcessMark,
    /// `nodes: N`: nothing is asked for.
    fixed: OnceLock<Part>,
    state: Mutex<State>,
    reasons: Notify,
}

#[derive(Debug, Default)]
struct State {
    units: u64,
    ends: Timestamp,
    /// Of the last call.
    number: u64,
    /// The process ends, and holds nothing from now on.
    has_left: bool,
    /// The other gateways on this machine.
    neighbours: Vec<String>,
}

/// What is said to Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartCall {
    /// Who calls.
    pub gateway: String,
    pub number: u64,
    /// What the gateway uses at most until the answer. `None`: it leaves.
    pub held: Option<u64>,
    /// Gateways whose processes are over.
    pub over: Vec<String>,
    /// By the clock of the gateway.
    pub sent: Timestamp,
}

/// What Redis answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PartAnswer {
    /// What the gateway holds from now on.
    pub units: u64,
    /// What would be fair.
    pub fair: u64,
    /// How many gateways there are.
    pub gateways: u32,
    /// A gateway comes or goes with this call: the others should call.
    pub has_changed: bool,
    /// For so long nothing is granted.
    pub quiet_for: Duration,
    /// The other gateways on the machine of this one.
    pub neighbours: Vec<String>,
}

/// When to call again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextCall {
    /// There is something to tell that others wait for.
    AtOnce,
    /// This gateway has less than would be fair, and may be granted more after this time.
    Soon(Duration),
    /// All is as it should be.
    Later,
}

impl HeldPart {
    /// Holds nothing.
    pub fn new(clock: Clock, mark: ProcessMark) -> Self {
        Self { clock, mark, fixed: OnceLock::new(), state: Mutex::default(), reasons: Notify::new() }
    }

    /// It is one of `nodes` equal parts, for ever.
    pub fn fix(&self, nodes: NonZeroU32) {
        self.fixed.get_or_init(|| Part::one_of(nodes));
    }

    pub fn is_fixed(&self) -> bool {
        self.fixed.get().is_some()
    }

    /// What this gateway may grant of every limit now.
    pub fn now(&self) -> Part {
        if let Some(fixed) = self.fixed.get() {
            return *fixed;
        }
        Part::of_units(self.state.lock().held(self.clock.now()))
    }

    /// When the part ends if Redis does not answer until then. `None`: it holds nothing, or for ever.
    pub fn ends_in(&self) -> Option<Duration> {
        let (now, state) = (self.clock.now(), self.state.lock());
        (!self.is_fixed() && state.held(now) > 0).then(|| state.ends.since(now))
    }

    /// The next call, which must be sent after this. `None`: there is nothing to ask for any more.
    pub fn call(&self) -> Option<PartCall> {
        let (now, mut state) = (self.clock.now(), self.state.lock());
        if self.is_fixed() || state.has_left {
            return None;
        }
        state.units = state.held(now);
        let held = Some(state.units);
        Some(self.next_call(&mut state, held, now))
    }

    /// Holds nothing from now on; the call says so. `None`: there is nothing to say.
    pub fn leave(&self) -> Option<PartCall> {
        let (now, mut state) = (self.clock.now(), self.state.lock());
        if self.is_fixed() || state.has_left || state.number == 0 {
            return None;
        }
        state.units = 0;
        state.has_left = true;
        Some(self.next_call(&mut state, None, now))
    }

    /// The answer to a call. Only that to the last one counts.
    pub fn answered(&self, call: &PartCall, answer: &PartAnswer) -> NextCall {
        let mut state = self.state.lock();
        if call.number != state.number || state.has_left {
            return NextCall::Later;
        }
        // Less than is fair is taken at once, and told then.
        let units = answer.units.min(answer.fair);
        state.units = units;
        state.ends = call.sent + HELD_FOR;
        state.neighbours.clone_from(&answer.neighbours);
        if units < answer.units || self.knows_of_one_over(&state) {
            NextCall::AtOnce
        } else if units < answer.fair {
            NextCall::Soon(answer.quiet_for)
        } else {
            NextCall::Later
        }
    }

    /// Whether a gateway on this machine is over that Redis still knows. The next call says so.
    pub fn is_one_over(&self) -> bool {
        self.knows_of_one_over(&self.state.lock())
    }

    /// Something may be lost in Redis, or gateways come or go: the next call should be made at once.
    pub fn call_at_once(&self) {
        self.reasons.notify_one();
    }

    /// Waits for a reason to call at once.
    pub async fn reason_to_call(&self) {
        self.reasons.notified().await;
    }

    fn knows_of_one_over(&self, state: &State) -> bool {
        state.neighbours.iter().any(|gateway| self.knows_is_over(gateway))
    }

    fn knows_is_over(&self, gateway: &str) -> bool {
        gateway.parse().is_ok_and(|mark| self.mark.knows_is_over(&mark))
    }

    fn next_call(&self, state: &mut State, held: Option<u64>, now: Timestamp) -> PartCall {
        state.number += 1;
        let over = state.neighbours.iter().filter(|gateway| self.knows_is_over(gateway)).cloned().collect();
        PartCall { gateway: self.mark.to_string(), number: state.number, held, over, sent: now }
    }
}

impl State {
    fn held(&self, now: Timestamp) -> u64 {
        if now < self.ends { self.units.min(WHOLE) } else { 0 }
    }
}

/// For how long after its last call a gateway may use its part. An outage that is longer finds it without one. A gateway that
/// crashed on a machine of its own leaves its part unused for so long.
pub const HELD_FOR: Duration = Duration::from_secs(3600);

/// For how long after it was heard of nobody else is given the part of a gateway: longer than [`HELD_FOR`] by what clocks may
/// drift apart in that time, 1 in 100.
pub const RESERVED_FOR: Duration = Duration::from_secs(3636);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const HALF: u64 = WHOLE / 2;

    fn held_part() -> (HeldPart, ManualClock) {
        let clock = ManualClock::at(Timestamp::from_micros(9_000_000));
        (HeldPart::new(Clock::Manual(clock.clone()), ProcessMark::of_this_process()), clock)
    }

    fn answer(units: u64, fair: u64) -> PartAnswer {
        PartAnswer { units, fair, gateways: 2, has_changed: false, quiet_for: Duration::ZERO, neighbours: Vec::new() }
    }

    fn ask(held: &HeldPart, units: u64, fair: u64) -> NextCall {
        held.answered(&held.call().expect("a call"), &answer(units, fair))
    }

    #[test]
    fn it_begins_with_nothing_and_grows_by_answers() {
        let (held, _) = held_part();
        assert!(held.now().is_none());
        assert_eq!(held.call().expect("a call").held, Some(0));
        assert_eq!(ask(&held, 0, WHOLE), NextCall::Soon(Duration::ZERO));
        assert!(held.now().is_none());
        assert_eq!(ask(&held, WHOLE, WHOLE), NextCall::Later);
        assert!(held.now().is_whole());
    }

    #[test]
    fn it_shrinks_before_it_tells() {
        let (held, _) = held_part();
        ask(&held, WHOLE, WHOLE);
        assert_eq!(ask(&held, WHOLE, HALF), NextCall::AtOnce);
        assert_eq!(held.now(), Part::of_units(HALF));
        assert_eq!(held.call().expect("a call").held, Some(HALF));
    }

    #[test]
    fn what_redis_has_lost_and_given_to_others_is_given_up() {
        let (held, _) = held_part();
        ask(&held, WHOLE, WHOLE);
        assert_eq!(ask(&held, 5, HALF), NextCall::Soon(Duration::ZERO));
        assert_eq!(held.now(), Part::of_units(5));
    }

    #[test]
    fn only_the_answer_to_the_last_call_counts() {
        let (held, _) = held_part();
        let first = held.call().expect("a call");
        let second = held.call().expect("a call");
        assert_eq!((first.number, second.number), (1, 2));
        held.answered(&first, &answer(WHOLE, WHOLE));
        assert!(held.now().is_none());
        held.answered(&second, &answer(HALF, HALF));
        assert_eq!(held.now(), Part::of_units(HALF));
    }

    #[test]
    fn it_ends_an_hour_after_the_last_call_was_sent_that_was_answered() {
        let (held, clock) = held_part();
        let call = held.call().expect("a call");
        clock.advance(Duration::from_secs(10));
        held.answered(&call, &answer(WHOLE, WHOLE));
        assert_eq!(held.ends_in(), Some(Duration::from_secs(3590)));
        clock.advance(Duration::from_secs(3589));
        held.call();
        assert!(held.now().is_whole());
        clock.advance(Duration::from_secs(1));
        assert!(held.now().is_none());
        assert_eq!((held.ends_in(), held.call().expect("a call").held), (None, Some(0)));
    }

    #[test]
    fn one_that_leaves_holds_nothing_whatever_is_answered() {
        let (held, _) = held_part();
        assert_eq!(held.leave(), None);
        let (held, _) = held_part();
        ask(&held, WHOLE, WHOLE);
        let on_its_way = held.call().expect("a call");
        assert_eq!(held.leave().expect("a call").held, None);
        held.answered(&on_its_way, &answer(WHOLE, WHOLE));
        assert!(held.now().is_none());
        assert_eq!((held.call(), held.leave()), (None, None));
    }

    #[test]
    fn a_process_of_this_machine_that_is_over_is_told() {
        let (held, _) = held_part();
        let mut over = held.mark.to_string();
        over.push('9');
        let neighbours = vec![held.mark.to_string(), over.clone(), "elsewhere-1-2".to_owned()];
        let call = held.call().expect("a call");
        assert_eq!(held.answered(&call, &PartAnswer { neighbours, ..answer(HALF, HALF) }), NextCall::AtOnce);
        assert!(held.is_one_over());
        let call = held.call().expect("a call");
        assert_eq!(call.over, [over]);
        assert_eq!(held.answered(&call, &answer(HALF, HALF)), NextCall::Later);
        assert!(!held.is_one_over());
        assert_eq!(held.call().expect("a call").over, Vec::<String>::new());
    }

    #[test]
    fn a_fixed_part_asks_for_nothing() {
        let (held, _) = held_part();
        held.fix(NonZeroU32::new(4).expect("above zero"));
        assert_eq!(held.now(), Part::one_of(NonZeroU32::new(4).expect("above zero")));
        assert_eq!((held.call(), held.leave(), held.ends_in()), (None, None, None));
    }
}
