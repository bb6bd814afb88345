//! What one counter gained in each step, for the last 24 hours.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Timestamp;

/// The length of a step. Steps begin at multiples of it, by the wall clock.
pub const STEP: Duration = Duration::from_secs(10);

/// The longest time that is kept.
pub const MAX_MINUTES: u64 = 24 * 60;

pub(super) const STEPS_PER_MINUTE: u64 = 6;
const STEPS_PER_HOUR: u64 = 60 * STEPS_PER_MINUTE;

/// The hour that asks may begin within, and those after it.
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
    /// Adds to a step, and forgets what is older than 24 hours or, after the clock was set back, still to come.
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
    use super::*;

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
}
