//! Timers of connections: a cheap deadline, a least rate, the timeout that joins both, and one that our own lag does not
//! shorten.

mod lazy_timer;
mod min_rate;
mod peer_timeout;
mod progress_timeout;

pub use self::lazy_timer::LazyTimer;
pub use self::min_rate::MinRate;
pub use self::peer_timeout::PeerTimedOut;
pub use self::peer_timeout::peer_timeout;
pub use self::peer_timeout::step;
pub use self::progress_timeout::ProgressTimeout;
