//! Reading the configuration anew: all of it is applied, or nothing.

mod apply;
mod error;
mod queue;
mod read;

pub use self::error::ReloadError;

pub(super) use self::queue::ReloadQueue;
