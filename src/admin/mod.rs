//! The admin listener: health checks and metrics for monitoring, and an API and a dashboard for operators.

mod advice;
mod auth;
mod bans;
mod body;
mod config;
mod events;
mod health;
mod history;
mod json_body;
mod key_parts;
mod limits;
mod metrics;
mod openapi;
mod operations;
mod origin;
mod page;
mod problem;
mod query;
mod readiness;
mod requests;
mod router;
mod server;
mod session;
mod settings;
mod shared;
mod state;
mod status;
mod taken_input;
mod token;
mod top;

#[cfg(test)]
mod tests;

pub use self::config::LoadedConfig;
pub use self::config::Mistake;
pub use self::config::ReloadRefusal;
pub use self::config::ReloadReply;
pub use self::config::ReloadReport;
pub use self::config::ReloadRequest;
pub use self::readiness::Readiness;
pub use self::server::serve;
pub use self::settings::AdminRules;
pub use self::settings::AdminSettings;
pub use self::shared::tell_others;
pub use self::shared::tell_the_rest;
pub use self::state::AdminSources;
pub use self::state::AdminState;
pub use self::status::GatewayIdentity;
pub use self::token::Token;
