//! The operational log: what the gateway reports about itself, on stderr.

mod message;
mod operational_log;

pub use self::operational_log::OperationalLog;
