//! Handles requests, from the connection to the log line.
//!
//! [`handle`] shows all steps in order; the other modules are the steps. What asks for a decision only, in `fronts`, takes
//! the same steps up to forwarding: [`judge`].

pub mod admit;
pub mod body;
pub mod decide {
    //! Decides a request by the rules, and applies what follows: bans that begin, proofs of work that are redeemed.

    pub mod bans;
    pub mod challenge;
    pub mod descriptors;
    pub mod record;
    pub mod request;
}
pub mod enforce;
pub mod exchange;
pub mod fault;
pub mod forward {
    //! Forwards allowed requests to the application, and relays its answers.

    mod answers;
    pub mod send;
    pub mod upgrade;
}
pub mod handle;
pub mod header_kind;
pub mod headers;
pub mod languages;
pub mod outcome_watch;
pub mod pages;
pub mod ratelimit_headers;
pub mod reservation;
pub mod respond {
    //! The gateway's own answers: denials in their configured form, and errors.

    pub mod page;
    pub mod refusal;
    pub mod reply;
}
pub mod response_body;
pub mod service;
pub mod snapshot;
pub mod stages;
pub mod tokens;

pub use self::admit::Arrival;
pub use self::enforce::{HeldRequests, Passed};
pub use self::exchange::Persistence;
pub use self::fault::CallFault;
pub use self::handle::judge;
pub use self::ratelimit_headers::HeaderStyle;
pub use self::response_body::{NeededBody, ResponseBody, ShownAnswer, Unanswered};
pub use self::service::Gateway;
pub use self::snapshot::{GatewaySettings, Snapshot};
pub use self::tokens::TokenSettings;
