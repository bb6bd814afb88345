//! Handles requests, from the connection to the log line.
//!
//! [`handle`] shows all steps in order; the other modules are the steps. What asks for a decision only, in `fronts`, takes
//! the same steps up to forwarding: [`judge`].

pub mod admit;
mod call_fault;
pub mod decide;
pub mod enforce;
pub mod exchange;
pub mod facts;
pub mod followed_lists;
pub mod forward;
pub mod handle;
pub mod held_requests;
pub mod hold;
pub mod pooled_future;
pub mod reservation;
pub mod respond;
pub mod response_body;
pub mod service;
pub mod settings;
pub mod snapshot;
pub mod tokens;
pub mod worker_state;

pub use self::admit::admission::Arrival;
pub use self::call_fault::CallFault;
pub use self::enforce::Passed;
pub use self::forward::shown_answer::NeededBody;
pub use self::forward::shown_answer::ShownAnswer;
pub use self::forward::shown_answer::Unanswered;
pub use self::handle::judge;
pub use self::held_requests::HeldRequests;
pub use self::pooled_future::PooledFuture;
pub use self::response_body::ResponseBody;
pub use self::service::Gateway;
pub use self::settings::GatewaySettings;
pub use self::settings::HeaderStyle;
pub use self::snapshot::Snapshot;
pub use self::tokens::TokenSettings;
