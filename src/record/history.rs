//! The counts of each ten seconds of the last 24 hours, by route and by limit.
//!
//! Requests pay nothing for it: once a second, and for each report, the process reads the counters of the metrics, and
//! adds their growth to the current step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde::{Deserialize, Serialize};

use crate::record::DecisionLabel;
use crate::words::clock::Timestamp;

/// The counts of each decision, in steps, by the name of a route or a limit.
pub type Counts = BTreeMap<String, BTreeMap<String, Vec<u64>>>;

/// The counts of each step of a time span.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryReport {
    /// When the first step begins.
    pub from: Timestamp,
    /// How many steps there are, the current one included.
    pub steps: u64,
    /// `-` stands for requests without a route.
    pub routes: Counts,
    pub limits: Counts,
}

fn ensure(counts: &mut Counts, steps: u64, name: &str, decision: &str) {
    let decisions = counts.entry(name.to_owned()).or_default();
    decisions.entry(decision.to_owned()).or_insert_with(|| vec![0; usize::try_from(steps).unwrap_or_default()]);
}

// Ten minutes of the history of one gateway, as it tells them to the others.

/// Ten minutes.
pub(super) const CHUNK_STEPS: u64 = 60;

impl HistoryReport {
    /// How many requests a route had.
    pub fn requests_of(&self, route: &str) -> u64 {
        let Some(decisions) = self.routes.get(route) else { return 0 };
        DecisionLabel::ALL.iter().filter_map(|label| decisions.get(label.as_str())).flatten().sum()
    }

    /// The steps of the last `minutes`, the current one last, in which nothing was counted yet.
    pub fn of_last(minutes: u64, now: Timestamp) -> Self {
        let steps = minutes * STEPS_PER_MINUTE;
        Self::empty(Step((Step::of(now).0 + 1).saturating_sub(steps)).begins(), steps)
    }

    pub(super) fn empty(from: Timestamp, steps: u64) -> Self {
        Self { from, steps, routes: Counts::new(), limits: Counts::new() }
    }

    /// Adds zeros where this route had no request of that decision.
    pub fn ensure_route(&mut self, name: &str, decision: &str) {
        ensure(&mut self.routes, self.steps, name, decision);
    }

    /// Adds zeros where this limit made no such decision.
    pub fn ensure_limit(&mut self, name: &str, decision: &str) {
        ensure(&mut self.limits, self.steps, name, decision);
    }
}

/// The counts of [`CHUNK_STEPS`] steps.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct HistoryChunk {
    /// The number of its first step since the Unix epoch.
    pub(super) first: u64,
    pub(super) routes: ChunkCounts,
    pub(super) limits: ChunkCounts,
}

/// By name and decision. Steps behind the last one that counted anything are left out.
pub(super) type ChunkCounts = BTreeMap<String, BTreeMap<String, Vec<u64>>>;

impl HistoryChunk {
    /// The number of the chunk that this moment is in, since the Unix epoch.
    pub fn number(moment: Timestamp) -> u64 {
        Step::of(moment).0 / CHUNK_STEPS
    }

    /// The number of this chunk.
    pub fn own_number(&self) -> u64 {
        self.first / CHUNK_STEPS
    }

    /// The encoding for other gateways.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("names and counts can be written")
    }

    /// `None`: another version has written it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

impl HistoryReport {
    /// Adds what another gateway has counted in the time of this report.
    pub fn add(&mut self, chunk: &HistoryChunk) {
        let begin = Step::of(self.from).0;
        for (into, counts) in [(&mut self.routes, &chunk.routes), (&mut self.limits, &chunk.limits)] {
            for (name, decisions) in counts {
                for (decision, counts) in decisions {
                    let steps = (chunk.first..).zip(counts).filter_map(|(step, count)| {
                        let position = step.checked_sub(begin).filter(|position| *position < self.steps)?;
                        Some((usize::try_from(position).ok()?, *count))
                    });
                    let steps: Vec<_> = steps.filter(|(_, count)| *count > 0).collect();
                    if steps.is_empty() {
                        continue;
                    }
                    let zeros = || vec![0; usize::try_from(self.steps).unwrap_or_default()];
                    let sums = into.entry(name.clone()).or_default().entry(decision.clone()).or_insert_with(zeros);
                    for (position, count) in steps {
                        sums[position] += count;
                    }
                }
            }
        }
    }
}

// Follows the counters of requests and of limits.

/// The counts of each step, under every name that counted anything. It has as many series as the metrics have counters,
/// and like them it goes on through reloads.
#[derive(Debug, Default)]
pub struct History {
    followed: Mutex<Followed>,
}

#[derive(Debug, Default)]
struct Followed {
    /// By route or limit, then by decision.
    series: BTreeMap<Subject, BTreeMap<&'static str, FollowedCounters>>,
    /// When the counters were read last.
    read: Option<Timestamp>,
}

/// The subject of a series: what it counts.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::record) enum Subject {
    /// `-` stands for requests without a route.
    Route(Arc<str>),
    Limit(Arc<str>),
}

/// The counters of one name and one decision.
#[derive(Debug, Default)]
struct FollowedCounters {
    /// Each with what distinguishes it further: the class of the status.
    counters: Vec<(&'static str, Counter)>,
    /// The sum of all counters when they were read last.
    seen: u64,
    series: Series,
}

impl History {
    /// Reads this counter from now on. `part` distinguishes the counters of one decision; a counter that is followed
    /// already is not followed twice.
    pub(in crate::record) fn follow(
        &self,
        subject: Subject,
        decision: &'static str,
        part: &'static str,
        counter: &Counter,
    ) {
        let mut followed = self.followed.lock();
        let FollowedCounters { counters, .. } =
            followed.series.entry(subject).or_default().entry(decision).or_default();
        if !counters.iter().any(|(known, _)| *known == part) {
            counters.push((part, counter.clone()));
        }
    }

    /// Adds what the counters gained since the last reading to the step in the middle of that time.
    pub fn read_counters(&self, now: Timestamp) {
        self.followed.lock().read_counters(now);
    }

    /// The counts so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (subject, decisions) in &self.followed.lock().series {
            let sum = |decision: &FollowedCounters| -> u64 {
                decision.counters.iter().map(|(_, counter)| counter.get()).sum()
            };
            match subject {
                Subject::Route(name) => {
                    let passing = DecisionLabel::ALL.into_iter().filter(|label| label.passes());
                    let passed = passing.filter_map(|label| decisions.get(label.as_str())).map(sum).sum();
                    totals.passed += passed;
                    totals.routes.insert(Arc::clone(name), passed);
                }
                Subject::Limit(name) => {
                    totals.limits.insert(Arc::clone(name), decisions.values().map(sum).sum());
                }
            }
        }
        totals
    }

    /// The steps of the last `minutes`, the current one last. Reads the counters first, so that the report is up to
    /// date.
    pub fn report(&self, minutes: u64, now: Timestamp) -> HistoryReport {
        let mut followed = self.followed.lock();
        followed.read_counters(now);
        let mut report = HistoryReport::of_last(minutes, now);
        let (from, count) = (Step::of(report.from), report.steps);
        for (subject, decisions) in &followed.series {
            for (decision, FollowedCounters { series, .. }) in decisions {
                if series.is_empty_since(from) {
                    continue;
                }
                let (counts, name) = match subject {
                    Subject::Route(name) => (&mut report.routes, name),
                    Subject::Limit(name) => (&mut report.limits, name),
                };
                counts.entry(name.to_string()).or_default().insert((*decision).to_owned(), series.from(from, count));
            }
        }
        report
    }

    /// The counts of ten minutes, for other gateways.
    pub fn chunk(&self, number: u64) -> HistoryChunk {
        let first = Step(number * CHUNK_STEPS);
        let mut chunk = HistoryChunk { first: first.0, ..HistoryChunk::default() };
        for (subject, decisions) in &self.followed.lock().series {
            for (decision, FollowedCounters { series, .. }) in decisions {
                let mut counts = series.from(first, CHUNK_STEPS);
                let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
                counts.truncate(end);
                if counts.is_empty() {
                    continue;
                }
                let (into, name) = match subject {
                    Subject::Route(name) => (&mut chunk.routes, name),
                    Subject::Limit(name) => (&mut chunk.limits, name),
                };
                into.entry(name.to_string()).or_default().insert((*decision).to_owned(), counts);
            }
        }
        chunk
    }
}

/// How many there were since the start of the process.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Requests that were forwarded, also after a delay.
    pub passed: u64,
    routes: BTreeMap<Arc<str>, u64>,
    limits: BTreeMap<Arc<str>, u64>,
}

impl Totals {
    /// How many requests were forwarded on a route.
    pub fn route(&self, name: &str) -> u64 {
        self.routes.get(name).copied().unwrap_or_default()
    }

    /// How many requests a limit decided about.
    pub fn limit(&self, name: &str) -> u64 {
        self.limits.get(name).copied().unwrap_or_default()
    }
}

impl Followed {
    fn read_counters(&mut self, now: Timestamp) {
        let since = self.read.replace(now).unwrap_or(now);
        let step = Step::of(since + now.since(since) / 2);
        for followed in self.series.values_mut().flat_map(BTreeMap::values_mut) {
            let sum = followed.counters.iter().map(|(_, counter)| counter.get()).sum();
            let gained = sum - followed.seen;
            if gained > 0 {
                followed.series.add(step, gained);
                followed.seen = sum;
            }
        }
    }
}

// The growth of one counter in each step, for the last 24 hours.

/// The length of a step. Steps begin at multiples of it, by the wall clock.
pub const STEP: Duration = Duration::from_secs(10);

/// The longest time that is kept.
pub const MAX_MINUTES: u64 = 24 * 60;

pub(super) const STEPS_PER_MINUTE: u64 = 6;

const STEPS_PER_HOUR: u64 = 60 * STEPS_PER_MINUTE;

/// The hours of the longest report.
const HOURS: u64 = MAX_MINUTES / 60;

/// The number of a step since the Unix epoch.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Step(pub(super) u64);

/// One count for each step. An hour in which nothing was counted takes no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// By the number of the hour since the Unix epoch.
    hours: BTreeMap<u64, Box<[u32]>>,
}

impl Step {
    pub(super) fn of(moment: Timestamp) -> Self {
        Self(moment.as_micros() / 1_000_000 / STEP.as_secs())
    }

    pub(super) fn begins(self) -> Timestamp {
        Timestamp::from_micros(self.0 * STEP.as_secs() * 1_000_000)
    }
}

impl Series {
    /// Adds to a step, and drops steps that are older than 24 hours or, after the clock was set back, in the future.
    pub(super) fn add(&mut self, Step(step): Step, count: u64) {
        let hour = step / STEPS_PER_HOUR;
        self.hours.retain(|&kept, _| kept <= hour && kept + HOURS >= hour);
        let steps = self.hours.entry(hour).or_insert_with(|| (0..STEPS_PER_HOUR).map(|_| 0).collect());
        let slot = &mut steps[within_hour(step)];
        *slot = slot.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// The counts of `count` steps from this one on.
    pub(super) fn from(&self, Step(first): Step, count: u64) -> Vec<u64> {
        let of = |step: u64| {
            let steps = self.hours.get(&(step / STEPS_PER_HOUR));
            steps.map_or(0, |steps| u64::from(steps[within_hour(step)]))
        };
        (first..first + count).map(of).collect()
    }

    /// Whether nothing was counted from this step on.
    pub(super) fn is_empty_since(&self, Step(first): Step) -> bool {
        self.hours.last_key_value().is_none_or(|(&newest, _)| newest < first / STEPS_PER_HOUR)
    }
}

/// The position of a step in its hour.
fn within_hour(step: u64) -> usize {
    usize::try_from(step % STEPS_PER_HOUR).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOON: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn login() -> Subject {
        Subject::Route("login".into())
    }

    #[test]
    fn what_a_counter_gains_stands_in_the_step_of_that_time() {
        let history = History::default();
        let (passed, failed) = (Counter::default(), Counter::default());
        history.follow(login(), "allowed", "2xx", &passed);
        history.follow(login(), "allowed", "5xx", &failed);
        // A reload finds the same counter once more.
        history.follow(login(), "allowed", "2xx", &passed);
        history.read_counters(NOON);
        passed.inc_by(3);
        failed.inc();
        history.read_counters(NOON + Duration::from_secs(1));
        passed.inc_by(5);
        history.read_counters(NOON + Duration::from_secs(11));
        passed.inc_by(7);
        let report = history.report(1, NOON + Duration::from_secs(12));
        assert_eq!(report.from, Timestamp::from_micros(NOON.as_micros() - 40_000_000));
        assert_eq!(report.routes["login"]["allowed"], [0, 0, 0, 0, 9, 7]);
        assert!(report.limits.is_empty());
    }

    #[test]
    fn a_name_in_which_nothing_was_counted_for_long_is_left_out() {
        let history = History::default();
        let denied = Counter::default();
        history.follow(Subject::Limit("pace".into()), "denied", "", &denied);
        denied.inc();
        assert_eq!(history.report(60, NOON).limits["pace"]["denied"].iter().sum::<u64>(), 1);
        assert!(history.report(60, NOON + Duration::from_secs(3 * 3600)).limits.is_empty());
        assert_eq!(history.report(300, NOON + Duration::from_secs(3 * 3600)).limits["pace"]["denied"].len(), 1800);
    }

    #[test]
    fn a_step_begins_at_a_multiple_of_ten_seconds() {
        let moment = Timestamp::from_micros(1_700_000_009_999_999);
        assert_eq!(Step::of(moment).begins(), Timestamp::from_micros(1_700_000_000_000_000));
        assert_eq!(Step::of(Timestamp::from_micros(1_700_000_010_000_000)).0, Step::of(moment).0 + 1);
    }

    #[test]
    fn steps_in_which_nothing_was_counted_are_zero() {
        let mut series = Series::default();
        series.add(Step(359), 2);
        series.add(Step(360), 3);
        series.add(Step(360), 1);
        assert_eq!(series.from(Step(357), 6), [0, 0, 2, 4, 0, 0]);
        assert!(!series.is_empty_since(Step(360)) && series.is_empty_since(Step(720)));
    }

    #[test]
    fn a_day_is_kept_and_no_more() {
        let mut series = Series::default();
        for hour in 0..100 {
            series.add(Step(hour * STEPS_PER_HOUR), 1);
            assert!(series.hours.len() <= 25);
        }
        let day = series.from(Step(75 * STEPS_PER_HOUR), 25 * STEPS_PER_HOUR);
        assert_eq!(day.iter().sum::<u64>(), 25);
        assert_eq!(series.from(Step(0), STEPS_PER_HOUR).iter().sum::<u64>(), 0);
        // The clock was set back by two days.
        series.add(Step(50 * STEPS_PER_HOUR), 1);
        assert_eq!(series.hours.len(), 1);
    }

    #[test]
    fn the_counts_of_others_are_added_where_the_times_meet() {
        let counts = |counts: &[u64]| -> ChunkCounts {
            [("login".to_owned(), [("denied".to_owned(), counts.to_vec())].into())].into()
        };
        let chunk = HistoryChunk { first: 120, routes: counts(&[1, 0, 2, 3]), limits: ChunkCounts::new() };
        let chunk = HistoryChunk::from_bytes(&chunk.to_bytes()).unwrap();
        let mut report = HistoryReport::empty(Step(122).begins(), 3);
        report.add(&chunk);
        report.add(&chunk);
        assert_eq!(report.routes["login"]["denied"], [4, 6, 0]);
        let mut earlier = HistoryReport::empty(Step(100).begins(), 6);
        earlier.add(&chunk);
        assert!(earlier.routes.is_empty());
        assert_eq!(HistoryChunk::from_bytes(b"\xff\xff"), None);
    }
}
