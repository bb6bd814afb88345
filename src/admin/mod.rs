//! The admin listener: health checks and metrics for monitoring, and an API and a dashboard for operators.

mod attacks;
mod auth;
mod bans;
mod config;
mod events;
mod health;
mod history;
mod input;
mod limits;
mod openapi;
mod page;
mod problem;
mod requests;
mod server;
mod session;
mod shared;
mod state;
mod status;
mod top;

pub use self::attacks::watch_sign_ins;
pub use self::auth::Token;
pub use self::config::{
    LoadedConfig, ReloadRefusal, ReloadReply, ReloadReport, ReloadRequest, Reloaded, WaitingSettings,
};
pub use self::health::Readiness;
pub use self::server::{AdminRules, AdminSettings, serve};
pub use self::shared::{publish_last_records, publish_records};
pub use self::state::{AdminSources, AdminState};
pub use self::status::GatewayIdentity;
pub use crate::api::problem::Mistake;

#[cfg(test)]
mod tests;
