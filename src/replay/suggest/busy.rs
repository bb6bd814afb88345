//! The busiest minute, or hour, of a client.

use crate::clock::Timestamp;

/// Counts by windows that are aligned. The moments come in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    window: u32,
    current: u32,
    previous: u32,
    /// The most in one window.
    pub(super) most: u32,
    /// The most in two windows that follow each other. No window of that length, wherever it begins, has more.
    pub(super) most_anywhere: u32,
}

impl Busy {
    /// `length` is in seconds.
    pub(super) fn add(&mut self, at: Timestamp, length: u64) {
        let window = u32::try_from(at.as_micros() / 1_000_000 / length).unwrap_or(u32::MAX);
        if window != self.window {
            self.previous = if window == self.window.saturating_add(1) { self.current } else { 0 };
            (self.window, self.current) = (window, 0);
        }
        self.current = self.current.saturating_add(1);
        self.most = self.most.max(self.current);
        self.most_anywhere = self.most_anywhere.max(self.current.saturating_add(self.previous));
    }
}

impl Busy {
    /// With so many more that no window has.
    pub(super) fn beside(self, more: u32) -> Self {
        Self { most_anywhere: self.most_anywhere.saturating_add(more), ..self }
    }
}

#[cfg(test)]
impl Busy {
    pub(super) fn of(most: u32, most_anywhere: u32) -> Self {
        Self { most, most_anywhere, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_around_the_end_of_a_window_is_seen_whole() {
        let mut busy = Busy::default();
        for second in [0, 58, 59, 60, 61, 62, 300] {
            busy.add(Timestamp::from_micros(second * 1_000_000), 60);
        }
        assert_eq!((busy.most, busy.most_anywhere), (3, 6));
    }
}
