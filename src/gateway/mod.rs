//! Handles requests, from the connection to the log line.
//!
//! [`handle`] shows all steps in order; the other modules are the steps.

pub mod admit;
pub mod decide;
pub mod exchange;
pub mod facts;
pub mod forward;
pub mod handle;
pub mod held_requests;
pub mod hold;
mod pooled_future;
pub mod reservation;
pub mod respond;
pub mod response_body;
pub mod service;
pub mod settings;
pub mod snapshot;
pub mod worker_state;

pub use self::held_requests::HeldRequests;
pub use self::response_body::ResponseBody;
pub use self::service::Gateway;
pub use self::settings::GatewaySettings;
pub use self::settings::HeaderStyle;
pub use self::snapshot::Snapshot;
