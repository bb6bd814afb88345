//! What was counted in each ten seconds of the last 24 hours, by route and by limit.
//!
//! Requests pay nothing for it: once a second, and when somebody asks, the process reads the counters that the metrics
//! have anyway, and adds what they gained to the step of that moment.

mod chunk;
mod counters;
mod report;
mod series;

pub use self::chunk::HistoryChunk;
pub use self::counters::History;
pub(in crate::record) use self::counters::Subject;
pub use self::counters::Totals;
pub use self::report::Counts;
pub use self::report::HistoryReport;
pub use self::series::MAX_MINUTES;
pub use self::series::STEP;
