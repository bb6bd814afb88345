//! What a replay has found, for people and for programs.
//!
//! - [`tally`]: how often something happened, to whom, and when most of all; [`busiest`]: the clients it happened to
//!   most.
//! - [`replay_report`]: the report as a whole; `text`: in words.
//! - [`counts`], [`decisions`], [`difference`]: what is counted while requests are replayed.

pub mod busiest;
pub mod counts;
pub mod decisions;
pub mod difference;
pub mod replay_report;
pub mod tally;
mod text;

pub use self::busiest::BusiestClients;
pub use self::counts::ReplayCounts;
pub use self::difference::Differences;
pub use self::replay_report::ReplayReport;
pub use self::tally::Tally;
pub(in crate::replay) use self::text::counted;
pub(in crate::replay) use self::text::number;
