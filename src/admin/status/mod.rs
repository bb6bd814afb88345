//! How the gateway is: what it runs, what it counts with, and which other gateways there are.

mod gateways;
mod identity;
mod record;
mod response;
mod routes;
mod show;
mod traffic;

pub use self::identity::GatewayIdentity;
pub(super) use self::record::StatusRecord;
pub(super) use self::routes::routes;
