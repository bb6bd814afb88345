//! A request's way, from its connection to its log line.
//!
//! [`handle`] tells it from top to bottom; the rooms are its stages.

pub mod admit;
pub mod answer;
pub mod core;
pub mod decide;
pub mod forward;
pub mod front;
pub mod handle;
pub mod hold;
pub mod respond;
pub mod settings;
pub mod settle;
pub mod snapshot;
pub mod story;

pub use self::answer::ResponseBody;
pub use self::front::Gateway;
pub use self::hold::Holding;
pub use self::settings::HeaderStyle;
pub use self::settings::Settings;
pub use self::snapshot::Snapshot;
