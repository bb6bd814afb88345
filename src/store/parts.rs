//! Which part of every limit each gateway may grant while Redis is away, so that all parts are at most the whole at any
//! moment: while gateways start, end, crash, and lose their connection.
//!
//! Redis keeps a table: for each gateway its part, when it was heard of, and the number of its last call. Each gateway
//! calls the script `parts.lua` and says what it holds: once a minute, at once when another one says on the channel that it comes
//! or goes, and when Redis was restarted or emptied.
//!
//! - **A gateway shrinks first and tells then.** The answer says what would be fair, which is the same for all that are there.
//!   A holder of more takes less for itself at once, and its next call tells so. What it gave up is free from then on.
//! - **It grows only by what the script grants**, which is at most what is free. If the answer is lost, Redis has more in its
//!   table than the gateway uses, until the next call says what it holds. A call that arrives late, after a later one, is
//!   known by its number and changes nothing.
//! - **A part ends**: [`HELD_FOR`] after the gateway has *sent* the last call that was answered, by its own monotonic clock.
//!   Redis keeps it reserved for [`RESERVED_FOR`] after it was heard of, which is later, and longer by far more than clocks
//!   drift apart in that time. A gateway that is silent may be one that still decides and only lost Redis, so that
//!   nobody else is given its part before that.
//! - **Unless its process is over.** A gateway on the same machine can know that, see [`ProcessMark`], and tells Redis. So
//!   one that is started again after a crash need not wait.
//! - **A table that was lost grants nothing for 2 s**, and neither does one that another server wrote, which may be an old one:
//!   those that are there notice it, and tell what they hold. A gateway that does not reach Redis in these 2 s may lose its part
//!   to others, and uses it until its next answer.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fmt, fs, iter};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tokio::sync::Notify;

use crate::store::key_ring::random_bytes;
use crate::words::clock::{Clock, Timestamp};

// A part of every limit.

/// How many units the parts of all gateways may have together. It can be divided by every number up to 36, by 2^8, and by the
/// products of these that are below a few hundred, so that equal parts of it lose nothing. It is below 2^53, up to which the
/// numbers of Lua are exact.
pub const WHOLE: u64 = 1_155_228_423_148_800;

/// A part of every limit, from nothing to the whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    units: u64,
    of: u64,
}

impl Part {
    /// One of `nodes` equal parts.
    pub fn one_of(nodes: NonZeroU32) -> Self {
        Self { units: 1, of: u64::from(nodes.get()) }
    }

    /// So many of [`WHOLE`] units.
    pub fn of_units(units: u64) -> Self {
        Self { units, of: WHOLE }
    }

    /// What this part is of a count, rounded down. All parts together are never more than the count. `None`: nothing.
    pub fn of(self, count: NonZeroU32) -> Option<NonZeroU32> {
        let of_count = u128::from(count.get()) * u128::from(self.units) / u128::from(self.of);
        NonZeroU32::new(u32::try_from(of_count).unwrap_or(count.get()))
    }

    pub fn is_whole(self) -> bool {
        self.units == self.of
    }

    pub fn is_none(self) -> bool {
        self.units == 0
    }

    /// From 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "both are below 2^53")]
    pub fn as_fraction(self) -> f64 {
        self.units as f64 / self.of as f64
    }
}

// The part that this process holds: when it shrinks, grows and ends.

/// For how long after its last call a gateway may use its part. An outage that is longer finds it without one. A gateway that
/// crashed on a machine of its own leaves its part unused for so long.
pub const HELD_FOR: Duration = Duration::from_secs(3600);

/// For how long after it was heard of nobody else is given the part of a gateway: longer than [`HELD_FOR`] by what clocks may
/// drift apart in that time, 1 in 100.
pub const RESERVED_FOR: Duration = Duration::from_secs(3636);

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
    /// The number of the last call.
    number: u64,
    /// The process ends, and holds nothing from now on.
    has_left: bool,
    /// The other gateways on this machine.
    neighbours: Vec<String>,
}

/// A call to Redis about the part of this gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartCall {
    /// Who calls.
    pub gateway: String,
    pub number: u64,
    /// The units that the gateway uses at most until the answer. `None`: it leaves.
    pub held: Option<u64>,
    /// Gateways whose processes are over.
    pub over: Vec<String>,
    /// By the clock of the gateway.
    pub sent: Timestamp,
}

/// The answer of Redis.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PartAnswer {
    /// The units that the gateway holds from now on.
    pub units: u64,
    /// The units that would be fair.
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

    /// The part of every limit that this gateway may grant now.
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

// Names a process so that others on its machine know when it is over.

/// A process of a machine: `machine-pid-start`. Another one never has the same mark.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessMark {
    /// The running kernel and the namespace of process ids in which `pid` means something.
    machine: String,
    pid: i32,
    /// When it was started, in ticks since the kernel was.
    started: u64,
}

impl ProcessMark {
    /// The mark of this process. Where the kernel does not tell what is needed, it is a mark that no other process can judge.
    pub fn of_this_process() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        match (machine(), stat(pid)) {
            (Some(machine), Some(stat)) => Self { machine, pid, started: stat.started },
            _ => Self { machine: format!("{:032x}", u128::from_le_bytes(random_bytes())), pid, started: 0 },
        }
    }

    /// Whether the other process is certainly over. Only those of the machine that `self` is on can be known to be.
    pub fn knows_is_over(&self, other: &Self) -> bool {
        let is_known = self.machine == other.machine && self.started > 0;
        let Some(pid) = Pid::from_raw(other.pid).filter(|_| is_known) else { return false };
        // Processes of other users may be hidden in `/proc`, but not from this question.
        match test_kill_process(pid) {
            Err(Errno::SRCH) => true,
            Ok(()) | Err(_) => stat(other.pid).is_some_and(|stat| stat.has_ended || stat.started != other.started),
        }
    }
}

impl fmt::Display for ProcessMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, pid, started } = self;
        write!(f, "{machine}-{pid}-{started}")
    }
}

/// Fails with nothing: another version may have written it otherwise.
impl FromStr for ProcessMark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split('-');
        let (Some(machine), Some(pid), Some(started), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(());
        };
        let (pid, started) = (pid.parse().map_err(drop)?, started.parse().map_err(drop)?);
        Ok(Self { machine: machine.to_owned(), pid, started })
    }
}

/// The number that the running kernel chose when it started, and the number of the namespace of processes.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?.into_os_string().into_string().ok()?;
    let is_digit = |letter: &char| letter.is_ascii_hexdigit();
    let number = namespace.chars().filter(char::is_ascii_digit);
    Some(boot.chars().filter(is_digit).chain(iter::once('.')).chain(number).collect())
}

/// The state of a process, as the kernel reports it.
#[derive(Debug)]
struct Stat {
    started: u64,
    /// It is only waited for.
    has_ended: bool,
}

/// `None`: there is none, or the kernel does not tell.
fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    Some(Stat { has_ended, started: fields.nth(18)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::words::clock::ManualClock;

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

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().expect("a program")
    }

    fn mark_of(child: &Child) -> ProcessMark {
        let pid = i32::try_from(child.id()).expect("a process id");
        let this = ProcessMark::of_this_process();
        ProcessMark { pid, started: stat(pid).expect("it runs").started, ..this }
    }

    #[test]
    fn a_process_is_known_to_be_over_when_it_is() {
        let this = ProcessMark::of_this_process();
        assert!(!this.knows_is_over(&this));
        let mut child = sleeper();
        let mark = mark_of(&child);
        assert!(!this.knows_is_over(&mark));
        child.kill().expect("it runs");
        // Killed, and nobody has waited for it: it is over as soon as the kernel says so.
        while !stat(mark.pid).is_none_or(|stat| stat.has_ended) {
            std::thread::yield_now();
        }
        assert!(this.knows_is_over(&mark));
        child.wait().expect("it has ended");
        assert!(this.knows_is_over(&mark));
    }

    #[test]
    fn another_process_under_the_same_number_shows_that_the_first_is_over() {
        let this = ProcessMark::of_this_process();
        assert!(this.knows_is_over(&ProcessMark { started: this.started + 1, ..this.clone() }));
    }

    #[test]
    fn nothing_is_known_of_other_machines() {
        let this = ProcessMark::of_this_process();
        let elsewhere = ProcessMark { machine: "0123456789abcdef".to_owned(), pid: i32::MAX, started: 1 };
        assert!(!this.knows_is_over(&elsewhere));
        assert!(this.knows_is_over(&ProcessMark { pid: i32::MAX, ..this.clone() }));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let this = ProcessMark::of_this_process();
        assert_eq!(this.to_string().parse(), Ok(this));
        for wrong in ["", "a-1", "a-1-2-3", "a-x-2", "a-1-x"] {
            assert_eq!(wrong.parse::<ProcessMark>(), Err(()), "{wrong}");
        }
    }

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("above zero")
    }

    #[test]
    fn equal_parts_are_exact_and_all_of_them_are_never_more_than_the_whole() {
        for gateways in 1..=100 {
            let part = Part::of_units(WHOLE / u64::from(gateways));
            let fixed = Part::one_of(number(gateways));
            for count in (1..=200).chain([gateways * 7, u32::MAX]) {
                let of_count = part.of(number(count)).map_or(0, NonZeroU32::get);
                let exact = count / gateways;
                assert!(of_count == exact || gateways > 36 && of_count + 1 == exact, "{count} of {gateways}");
                assert_eq!(fixed.of(number(count)).map_or(0, NonZeroU32::get), exact);
            }
        }
    }

    #[test]
    fn nothing_and_the_whole() {
        assert_eq!(Part::of_units(0).of(number(u32::MAX)), None);
        assert_eq!(Part::of_units(WHOLE).of(number(u32::MAX)), Some(number(u32::MAX)));
        assert!(Part::of_units(WHOLE).is_whole() && Part::one_of(number(1)).is_whole());
        assert!(Part::of_units(0).is_none() && !Part::of_units(1).is_none());
        assert_eq!(Part::of_units(WHOLE / 4).as_fraction().to_bits(), 0.25_f64.to_bits());
    }
}
