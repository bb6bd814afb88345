//! The configuration in force, and its reload.

mod in_force;
mod media_type;
mod mistake;
mod reload;
mod reload_request;
mod routes;
mod show;

pub use self::in_force::LoadedConfig;
pub use self::in_force::ReloadReport;
pub use self::mistake::Mistake;
pub use self::reload_request::ReloadRefusal;
pub use self::reload_request::ReloadReply;
pub use self::reload_request::ReloadRequest;
pub(super) use self::routes::routes;
