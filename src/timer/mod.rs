//! Timers of connections: a cheap deadline, a least rate, and the timeout that joins both.

mod lazy_timer;
mod min_rate;
mod progress_timeout;

pub use self::lazy_timer::LazyTimer;
pub use self::min_rate::MinRate;
pub use self::progress_timeout::ProgressTimeout;
