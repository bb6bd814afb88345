//! Follows the counters of requests and of limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use super::chunk::CHUNK_STEPS;
use super::chunk::HistoryChunk;
use super::report::HistoryReport;
use super::series::Series;
use super::series::Step;
use crate::clock::Timestamp;
use crate::record::DecisionLabel;

/// What was counted in each step, under every name that counted anything. It has as many series as the metrics have
/// counters, and like them it goes on through reloads.
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

/// What is counted.
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

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (subject, decisions) in &self.followed.lock().series {
            let sum = |decision: &FollowedCounters| -> u64 {
                decision.counters.iter().map(|(_, counter)| counter.get()).sum()
            };
            match subject {
                Subject::Route(name) => {
                    let passed = PASSED.iter().filter_map(|passed| decisions.get(passed.as_str())).map(sum).sum();
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

    /// The steps of the last `minutes`, the current one last. Reads the counters first, so that what is counted by now
    /// is in it.
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

    /// What was counted in ten minutes, for other gateways.
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

/// The decisions after which a request is forwarded.
const PASSED: [DecisionLabel; 2] = [DecisionLabel::Allowed, DecisionLabel::Delayed];

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
}
