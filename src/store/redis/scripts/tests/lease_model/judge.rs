//! Says of requests that were admitted at their moments whether that is more than the limit lets pass.

use std::time::Duration;

use redis::Value;

use crate::rules::limit::{Algorithm, Rule, State};
use crate::words::clock::Timestamp;

/// The units of one key that one limit has let pass since the last reset, counted when they passed.
pub(super) enum Judge {
    /// Counts by the algorithm of the limit, without leases.
    State(State),
    Fixed(FixedWindows),
}

/// What has passed in the fixed windows that are open in Redis, which a reset may have opened later than the first request that
/// passed by a lease.
#[derive(Default)]
pub(super) struct FixedWindows {
    /// For each rate the window that is open.
    open: Vec<Window>,
}

#[derive(Clone, Copy, Default)]
struct Window {
    opened: Duration,
    units: u32,
}

impl Judge {
    pub(super) fn of(rule: &Rule) -> Self {
        match rule {
            Rule::Rates { algorithm: Algorithm::FixedWindow, .. } => Self::Fixed(FixedWindows::default()),
            _ => Self::State(State::fresh(rule)),
        }
    }

    /// A request passes at `now`, while Redis has this state of the key. Returns how many units too many that is.
    pub(super) fn admit(&mut self, rule: &Rule, now: Timestamp, stored: &Value) -> u32 {
        let Rule::Rates { rates, cost, .. } = rule else { panic!("a rule with rates") };
        match self {
            Self::State(state) => {
                let has_room = state.opens_at(rule, &[], now).is_none();
                state.charge(rule, &[], now);
                if has_room { 0 } else { cost.get() }
            }
            Self::Fixed(windows) => {
                windows.open.resize(rates.as_slice().len(), Window::default());
                let opened = opened(stored);
                let mut over = 0;
                for (place, (window, rate)) in windows.open.iter_mut().zip(rates).enumerate() {
                    let opened = opened.get(place).copied().unwrap_or(window.opened);
                    // What came before the first window belongs to it: leases survive a reset.
                    let is_next = opened > window.opened && !window.opened.is_zero();
                    *window = Window { opened, units: if is_next { 0 } else { window.units } };
                    window.units += cost.get();
                    over = over.max(window.units.saturating_sub(rate.count.get()));
                }
                over
            }
        }
    }
}

/// When the fixed windows of a state were opened, for each rate.
fn opened(stored: &Value) -> Vec<Duration> {
    let Value::BulkString(bytes) = stored else { return Vec::new() };
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    bytes[2..].chunks_exact(15).map(|rate| Duration::from_micros(number(&rate[4..11]))).collect()
}
