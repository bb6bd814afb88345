//! The admin listener: health checks and metrics for monitoring, and an API for operators.

mod auth;
mod bans;
mod events;
mod health;
mod history;
mod key_parts;
mod limits;
mod metrics;
mod openapi;
mod problem;
mod query;
mod router;
mod server;
mod settings;
mod state;
mod token;

#[cfg(test)]
mod tests;

pub use self::server::serve;
pub use self::settings::AdminRules;
pub use self::settings::AdminSettings;
pub use self::state::AdminSources;
pub use self::state::AdminState;
pub use self::token::Token;
