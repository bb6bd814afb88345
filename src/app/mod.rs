//! Settings become a running gateway: start, reload, signals, takeover and draining.
//!
//! Everything is bound before anything is served, so that a start either succeeds whole or leaves nothing behind. The
//! data plane is one thread a core ([`workers`]). The thread that controls the gateway has the rest: admin, health
//! checks, files, signals.

mod admin_listener;
mod allocator_trim;
mod announce;
mod audit_stream;
pub mod changes;
mod control_loop;
mod diagnostics;
mod drain;
mod event_sources;
pub mod file_watcher;
mod followed_lists;
mod gauges;
mod known_warnings;
pub mod listeners;
pub mod live_snapshot;
mod observe;
mod origin;
mod outputs;
mod pauses;
mod prepare;
pub mod process;
mod process_context;
mod record_ticks;
pub mod reload;
mod service_manager;
mod signals;
pub mod snapshot;
pub mod sockets;
mod source_tasks;
mod start;
mod start_error;
mod state;
pub mod store;
pub mod takeover;
mod token_keys;
pub mod upstream_tasks;
pub mod workers;

pub use self::drain::DrainOutcome;
pub use self::drain::DrainReason;
pub use self::origin::Origin;
pub use self::outputs::check_outputs;
pub use self::process_context::Load;
pub use self::process_context::ProcessContext;
pub use self::start_error::StartError;
pub use self::state::App;
