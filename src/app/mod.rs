//! Settings become a running gateway: start, reload, signals, takeover and draining.
//!
//! Everything is bound before anything is served, so that a start either succeeds whole or leaves nothing behind. The
//! data plane is one thread a core ([`workers`]). The thread that controls the gateway has the rest: admin, health
//! checks, files, signals.

pub mod announce;
mod control_loop;
mod event_sources;
mod followed_lists;
mod gauges;
pub mod listeners;
pub mod process;
pub mod reload;
pub mod sockets;
pub mod source_tasks;
mod start;
pub mod state;
pub mod store;
pub mod takeover;
mod token_keys;
pub mod workers;

pub use self::control_loop::{DrainOutcome, DrainReason};
pub use self::process::{Load, Origin, ProcessContext};
pub use self::start::StartError;
pub use self::state::App;
pub use self::store::{check_outputs, log_mistake};
