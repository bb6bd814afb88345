//! The exact algorithm: one log of all counted units, shared by all rates of a limit.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Rates, Standing, Standings};
use crate::rules::limit::state::{RateMemory, span};

/// The moments at which units were charged: as many of the newest as the largest count.
///
/// A rate of N per W has room for c units when the (N-c+1)-th latest is absent or at least W old. So no window of
/// length W holds more than N.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct SlidingLog {
    units: TimestampRing,
}

impl SlidingLog {
    pub(super) fn new() -> Self {
        Self { units: TimestampRing::empty() }
    }
}

/// A clock that stands still or steps back must not shorten a window, so time continues from the last unit.
fn not_before_latest(units: RingView<'_>, now: u64) -> u64 {
    units.latest().map_or(now, |latest| latest.max(now))
}

impl RateMemory for SlidingLog {
    fn opens_at(&self, rates: &Rates, _algorithm: Algorithm, cost: u32, now: u64) -> Option<u64> {
        let units = self.units.view();
        let now = not_before_latest(units, now);
        let mut opens = now;
        for rate in rates {
            let open = match rate.count.get().checked_sub(cost) {
                Some(others) => units.nth_latest(others as usize + 1).map_or(now, |unit| unit + rate.window()),
                None => now + rate.window(),
            };
            opens = opens.max(open);
        }
        (opens > now).then_some(opens)
    }

    fn charge(&mut self, rates: &Rates, _algorithm: Algorithm, cost: u32, now: u64) -> u64 {
        let now = not_before_latest(self.units.view(), now);
        let begin = now.saturating_sub(longest(rates));
        self.units.push(now, cost as usize, rates.largest_count().get() as usize, begin);
        now
    }

    fn take_back(&mut self, _rates: &Rates, _algorithm: Algorithm, cost: u32, moment: u64) {
        self.units.remove(moment, cost as usize);
    }

    fn standings(&self, rates: &Rates, _algorithm: Algorithm, now: u64) -> Standings {
        let units = self.units.view();
        let at = not_before_latest(units, now);
        let mut standings = Standings::new();
        for rate in rates {
            let window = rate.window();
            let count = rate.count.get();
            let used = match at.checked_sub(window) {
                Some(begin) => units.later_than(begin, count as usize),
                None => units.len().min(count as usize),
            };
            let leaves = units.nth_latest(used).filter(|_| used > 0).map_or(now, |oldest| oldest + window);
            standings.push(Standing { remaining: u64::from(count) - used as u64, reset: span(now, leaves) });
        }
        standings
    }

    fn expires_at(&self, rates: &Rates, _algorithm: Algorithm) -> u64 {
        self.units.view().latest().map_or(0, |latest| latest + longest(rates))
    }
}

fn longest(rates: &Rates) -> u64 {
    rates.iter().map(super::Rate::window).max().unwrap_or_default()
}

// A bounded log of the newest moments, at eight bytes each.

/// The most that a field of 24 bits holds. A ring never keeps more.
const FIELD: usize = (1 << 24) - 1;

/// The most that the field of lost moments holds, of 16 bits.
const MOST_LOST: usize = (1 << 16) - 1;

/// The newest moments, in order. A single moment needs no allocation, because most keys are seen once.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum TimestampRing {
    One(u64),
    /// The first word holds the position of the oldest moment, how many there are, and how many were lost. The others
    /// are moments. Without any word the ring is empty.
    Many(Box<[u64]>),
}

/// The moments of a ring, for several looks at them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingView<'r> {
    moments: &'r [u64],
    /// The position of the oldest.
    head: usize,
    len: usize,
}

/// Where the moments of a ring lie.
#[derive(Clone, Copy)]
struct RingHeader {
    /// The position of the oldest.
    head: usize,
    len: usize,
    /// How many were dropped for newer ones though they still counted, as far as is known. None was later than the
    /// oldest.
    lost: usize,
}

impl TimestampRing {
    pub(super) fn empty() -> Self {
        Self::Many(Box::default())
    }

    pub(super) fn view(&self) -> RingView<'_> {
        match self {
            Self::One(moment) => RingView { moments: std::slice::from_ref(moment), head: 0, len: 1 },
            Self::Many(words) => match words.split_first() {
                Some((header, moments)) => {
                    let RingHeader { head, len, .. } = RingHeader::read(*header);
                    RingView { moments, head, len }
                }
                None => RingView { moments: &[], head: 0, len: 0 },
            },
        }
    }

    fn len(&self) -> usize {
        self.view().len
    }

    /// Appends `moment` `times` times, and keeps the newest `keep`. Moments after `begin` still count.
    pub(super) fn push(&mut self, moment: u64, times: usize, keep: usize, begin: u64) {
        let (keep, len) = (keep.min(FIELD), self.len());
        let times = times.min(keep);
        let surplus = (len + times).saturating_sub(keep);
        let loses = surplus > 0 && self.view().nth_latest(len - surplus + 1).is_some_and(|dropped| dropped > begin);
        if times == 1 && (len == 0 || keep == 1 && !loses) {
            *self = Self::One(moment);
            return;
        }
        self.make_room(times, keep);
        let Self::Many(words) = self else { return };
        let mut span = RingHeader::of(words);
        let Some((header, moments)) = words.split_first_mut() else { return };
        let room = moments.len();
        span.head = wrapped(span.head + surplus, room);
        span.len -= surplus;
        span.lost = match surplus {
            0 => span.lost,
            // Moments that were dropped before are older than the ones that are dropped now.
            _ if !loses => 0,
            _ => (span.lost + surplus).min(MOST_LOST),
        };
        for _ in 0..times {
            moments[wrapped(span.head + span.len, room)] = moment;
            span.len += 1;
        }
        *header = span.header();
    }

    /// Removes the `times` newest moments that are not after `moment`. Lost moments come back, each at the latest time
    /// that it may have had.
    pub(super) fn remove(&mut self, moment: u64, times: usize) {
        let later = self.view().later_than(moment, self.len());
        let removed = times.min(self.len() - later);
        if removed == self.len() && self.lost() == 0 {
            *self = Self::empty();
            return;
        }
        let Self::Many(words) = self else { return };
        let mut span = RingHeader::of(words);
        let Some((header, moments)) = words.split_first_mut() else { return };
        let room = moments.len();
        let oldest = moments[span.head];
        let place = |n: usize| wrapped(span.head + span.len - n, room);
        // Later moments close the gap, the oldest first.
        let mut from = place(later + removed);
        for n in (1..=later).rev() {
            moments[from] = moments[place(n)];
            from = wrapped(from + 1, room);
        }
        let back = removed.min(span.lost);
        for _ in 0..back {
            span.head = wrapped(span.head + room - 1, room);
            moments[span.head] = oldest;
        }
        span.len -= removed - back;
        span.lost -= back;
        *header = span.header();
    }

    fn lost(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many(words) => RingHeader::of(words).lost,
        }
    }

    /// Makes room for `times` more, and at most `keep` in all.
    fn make_room(&mut self, times: usize, keep: usize) {
        let len = self.len();
        let needed = (len + times).min(keep);
        let room = match self {
            Self::One(_) => 0,
            Self::Many(words) => words.len().saturating_sub(1),
        };
        if needed <= room {
            return;
        }
        // Twice the words, so that a growing log is seldom moved.
        let room = needed.max(2 * room + 1).max(3).min(keep.max(needed));
        let kept = len.min(keep);
        let mut words = Vec::with_capacity(room + 1);
        words.push(RingHeader { head: 0, len: kept, lost: self.lost() }.header());
        let view = self.view();
        words.extend((1..=kept).rev().filter_map(|n| view.nth_latest(n)));
        words.resize(room + 1, 0);
        *self = Self::Many(words.into());
    }
}

impl RingView<'_> {
    pub(super) fn len(self) -> usize {
        self.len
    }

    pub(super) fn latest(self) -> Option<u64> {
        self.nth_latest(1)
    }

    /// The `n`-th newest moment, from 1.
    pub(super) fn nth_latest(self, n: usize) -> Option<u64> {
        let place = self.head + self.len.checked_sub(n)?;
        self.moments.get(wrapped(place, self.moments.len())).copied()
    }

    /// How many of the newest moments are later than `moment`, of at most `most`.
    pub(super) fn later_than(self, moment: u64, most: usize) -> usize {
        let mut later = 0;
        let mut candidates = self.len.min(most);
        // A busy key has only later moments, an idle key has none, so both ends are checked first.
        if self.nth_latest(candidates).is_none_or(|oldest| oldest > moment) {
            return candidates;
        }
        if self.latest().is_none_or(|latest| latest <= moment) {
            return 0;
        }
        while later + 1 < candidates {
            let middle = later.midpoint(candidates);
            match self.nth_latest(middle) {
                Some(found) if found > moment => later = middle,
                _ => candidates = middle,
            }
        }
        later
    }
}

/// A position in a ring of this size. `place` is less than twice the size.
fn wrapped(place: usize, room: usize) -> usize {
    if place < room { place } else { place - room }
}

impl RingHeader {
    fn of(words: &[u64]) -> Self {
        Self::read(words.first().copied().unwrap_or_default())
    }

    fn read(header: u64) -> Self {
        let field = |bits: u64| usize::try_from(bits & FIELD as u64).unwrap_or_default();
        Self { head: field(header >> 24), len: field(header), lost: field(header >> 48) }
    }

    fn header(self) -> u64 {
        (self.lost as u64) << 48 | (self.head as u64) << 24 | self.len as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::proptest;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_list_would(pushes in vec((0..5_u64, 1..12_usize, 1..20_usize), 0..60)) {
            let mut ring = TimestampRing::empty();
            let mut list: Vec<u64> = Vec::new();
            let mut now = 100;
            for (wait, times, keep) in pushes {
                now += wait;
                ring.push(now, times, keep, u64::MAX);
                list.extend(std::iter::repeat_n(now, times));
                list.drain(..list.len().saturating_sub(keep));
                let view = ring.view();
                assert_eq!(view.len(), list.len());
                let found: Vec<u64> = (1..=view.len()).rev().filter_map(|n| view.nth_latest(n)).collect();
                assert_eq!(found, list);
                assert_eq!(view.nth_latest(list.len() + 1), None);
                for moment in now - 10..=now {
                    for most in [1, 3, 50] {
                        let later = list.iter().rev().take(most).filter(|entry| **entry > moment).count();
                        assert_eq!(view.later_than(moment, most), later, "{list:?} {moment} {most}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_out_is_gone_and_what_was_lost_comes_back_no_earlier(
            steps in vec((0..5_u64, 1..4_usize, any::<bool>()), 0..60), keep in 1..9_usize, window in 1..40_u64,
        ) {
            let (mut ring, mut list) = (TimestampRing::empty(), Vec::new());
            let (mut now, mut lost) = (100, false);
            for (wait, times, removes) in steps {
                now += wait;
                if removes && !list.is_empty() {
                    // One that was pushed, at most as often as it was.
                    let moment: u64 = list[list.len() / 2];
                    let times = times.min(list.iter().filter(|pushed| **pushed == moment).count());
                    let last = list.iter().rposition(|pushed| *pushed == moment).expect("it was chosen among them");
                    list.drain(last + 1 - times..=last);
                    ring.remove(moment, times);
                } else {
                    let times = times.min(keep);
                    ring.push(now, times, keep, now - window);
                    list.extend(std::iter::repeat_n(now, times));
                }
                let view = ring.view();
                let found: Vec<u64> = (1..=view.len()).map_while(|n| view.nth_latest(n)).collect();
                assert!(found.is_sorted_by(|later, earlier| later >= earlier) && found.len() <= keep);
                for (n, moment) in list.iter().rev().enumerate().take(keep).filter(|(_, moment)| **moment > now - window) {
                    assert!(found[n] >= *moment, "{found:?} {list:?}");
                }
                lost |= list.iter().filter(|moment| **moment > now - window).count() > keep;
                if !lost {
                    let newest: Vec<u64> = list.iter().rev().take(found.len()).copied().collect();
                    assert_eq!(found, newest);
                }
            }
        }
    }

    #[test]
    fn it_takes_no_more_room_than_it_keeps() {
        let mut ring = TimestampRing::empty();
        for moment in 0..100 {
            ring.push(moment, 1, 20, u64::MAX);
        }
        let TimestampRing::Many(words) = ring else { panic!("twenty moments are many") };
        assert_eq!(words.len(), 21);
    }

    #[test]
    fn the_log_keeps_the_newest_five_of_a_limit_of_five() {
        let rates: Rates = "1/second; 5/minute".parse().expect("two rates");
        let at = |minute: u64, second: u64| ((12 * 60 + minute) * 60 + second) * 1_000_000;
        let mut log = SlidingLog::new();
        for moment in [at(33, 35), at(33, 37), at(34, 14), at(34, 26), at(34, 28)] {
            log.charge(&rates, Algorithm::SlidingWindowLog, 1, moment);
        }
        let opens = |log: &SlidingLog, now| log.opens_at(&rates, Algorithm::SlidingWindowLog, 1, now);
        assert_eq!(opens(&log, at(34, 31)), Some(at(34, 35)));
        assert_eq!(opens(&log, at(34, 40)), None);
        log.charge(&rates, Algorithm::SlidingWindowLog, 1, at(34, 40));
        let newest_first: Vec<_> = (1..=6).map_while(|n| log.units.view().nth_latest(n)).collect();
        assert_eq!(newest_first, [at(34, 40), at(34, 28), at(34, 26), at(34, 14), at(33, 37)]);
    }
}
