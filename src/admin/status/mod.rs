//! How the gateway is: what it runs, what it counts with, and which other gateways there are.

mod gateways;
mod identity;
mod record;
mod report;
mod response;
mod routes;
mod show;
mod traffic;

pub use self::identity::GatewayIdentity;
pub use self::report::share;
pub use self::report::share_end;
pub(super) use self::routes::routes;
