//! Replays access logs: what a configuration would have done to yesterday's traffic.
//!
//! - [`logged_request`]: a request as a log tells it; [`formats`]: the formats of logs, each a pure parser of one line.
//! - [`input`]: the requests of several files in the order of time.
//! - [`contents`]: what a log holds; the rules that need more are left out.
//! - [`simulation`]: decides requests as the gateway does, with the time of the log and counts in memory.
//! - [`report`]: what was found.
//! - [`suggest`](mod@suggest): proposes limits that the traffic would have lived with.

pub mod contents;
pub mod formats;
pub mod input;
pub mod logged_request;
pub mod report;
pub mod simulation;
pub mod suggest;

pub use self::contents::{LeftOut, LogContents};
pub use self::formats::{FieldNames, InvalidFields, LineContent, LineFormat, LineReader, LogFormat, LogLine};
pub use self::input::{LogFiles, Position, ReadError};
pub use self::logged_request::{AnsweredBy, LoggedHeader, LoggedKey, LoggedRequest, LoggedValue};
pub use self::report::ReplayReport;
pub use self::simulation::{SimulatedDecision, Simulation, replay};
pub use self::suggest::suggest;
