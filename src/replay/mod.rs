//! Replays access logs: what a configuration would have done to yesterday's traffic.
//!
//! - [`logged_request`]: a request as a log tells it; [`formats`]: the formats of logs, each a pure parser of one line.
//! - [`input`]: the requests of several files in the order of time.
//! - [`contents`]: what a log holds; [`left_out`]: the rules that need more are left out.
//! - [`simulation`], `head`, `due`: decides requests as the gateway does, with the time of the log and counts in
//!   memory.
//! - [`replaying`]: all of it together; [`report`]: what was found.
//! - [`suggest`](mod@suggest): proposes limits that the traffic would have lived with.

pub mod contents;
mod due;
pub mod formats;
mod head;
pub mod input;
pub mod left_out;
pub mod logged_request;
pub mod replaying;
pub mod report;
pub mod simulation;
pub mod suggest;

pub use self::contents::LogContents;
pub use self::formats::FieldNames;
pub use self::formats::InvalidFields;
pub use self::formats::LineContent;
pub use self::formats::LineFormat;
pub use self::formats::LineReader;
pub use self::formats::LogFormat;
pub use self::formats::LogLine;
pub use self::input::LogFiles;
pub use self::input::Position;
pub use self::input::ReadError;
pub use self::left_out::LeftOut;
pub use self::logged_request::AnsweredBy;
pub use self::logged_request::LoggedHeader;
pub use self::logged_request::LoggedRequest;
pub use self::logged_request::LoggedValue;
pub use self::replaying::replay;
pub use self::report::ReplayReport;
pub use self::simulation::SimulatedDecision;
pub use self::simulation::Simulation;
pub use self::suggest::suggest;
