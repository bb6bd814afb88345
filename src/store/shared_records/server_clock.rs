//! The clock of Redis, as far as this process knows it.

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::clock::Timestamp;

/// Continues the last time that Redis has told.
#[derive(Debug)]
pub(super) struct ServerClock {
    own: Clock,
    /// What Redis told, and what the clock of this process said then.
    told: Mutex<Option<(Timestamp, Timestamp)>>,
}

impl ServerClock {
    pub(super) fn new(own: Clock) -> Self {
        Self { own, told: Mutex::default() }
    }

    pub(super) fn set(&self, told: Timestamp) {
        *self.told.lock() = Some((told, self.own.now()));
    }

    /// `None`: Redis was not asked yet.
    pub(super) fn now(&self) -> Option<Timestamp> {
        let (told, then) = (*self.told.lock())?;
        Some(told + self.own.now().since(then))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn the_time_of_the_server_goes_on_with_the_own_clock() {
        let own = ManualClock::at(Timestamp::from_micros(5_000_000));
        let clock = ServerClock::new(Clock::Manual(own.clone()));
        assert_eq!(clock.now(), None);
        clock.set(Timestamp::from_micros(900));
        own.advance(Duration::from_micros(50));
        assert_eq!(clock.now(), Some(Timestamp::from_micros(950)));
    }
}
