//! Reads the requests of several log files in the order of time.
//!
//! - [`decompress`]: opens a file, compressed or not; `lines`: its lines, within a bound.
//! - [`log_file`]: the requests of one file, and what could not be read.
//! - [`log_files`]: the requests of all files in the order in which they began.
//! - [`error`]: why a log cannot be read.

mod counting_reader;
mod decompress;
pub mod error;
mod lines;
pub mod log_file;
pub mod log_files;
mod unreadable_line;
mod zstd_frames;

pub use self::error::ReadError;
pub use self::log_files::LogFiles;
pub use self::log_files::Position;
pub use self::unreadable_line::UnreadableLine;
