//! Reading the configuration anew: all of it is applied, or nothing.

mod apply;
mod error;
mod queue;
mod read;
mod report;

pub use self::error::ReloadError;

pub(super) use self::queue::ReloadQueue;
pub(super) use self::report::loaded_config;
