//! A request's way, from its connection to its log line.
//!
//! [`handle`] tells it from top to bottom; the rooms are its stages.

pub mod admit;
pub mod answer;
pub mod core;
pub mod decide;
pub mod exchange;
pub mod facts;
pub mod forward;
pub mod front;
pub mod handle;
pub mod hold;
pub mod holding;
pub mod reservation;
pub mod respond;
pub mod settings;
pub mod snapshot;

pub use self::answer::ResponseBody;
pub use self::front::Gateway;
pub use self::holding::Holding;
pub use self::settings::HeaderStyle;
pub use self::settings::Settings;
pub use self::snapshot::Snapshot;
