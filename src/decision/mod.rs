//! Decides whether a request may pass, in three pure steps: `enter` → `plan` → `conclude`.
//!
//! 1. [`enter()`] looks at the head alone: lists, routes, and whether the gateway must read the body.
//! 2. [`RoutedRequest::plan`] extracts the keys and says what is to be charged, as a [`Batch`] that a store decides in
//!    one step.
//! 3. [`Plan::conclude`] turns the store's verdicts into a [`Decision`].

pub mod batch;
pub mod carried_sessions;
mod charges;
pub mod conclude;
pub mod conclusion;
pub mod denial;
pub mod descriptors;
pub mod device;
pub mod display;
pub mod enter;
pub mod explain;
mod known_client;
mod met_limit;
pub mod operator;
pub mod owned;
pub mod plan;
pub mod policy;
pub mod report;
mod ruling;
pub mod session;
pub mod settle;
pub mod sign_in;
mod source;

pub use self::batch::Batch;
pub use self::batch::Charge;
pub use self::batch::Settlement;
pub use self::batch::Verdict;
pub use self::batch::Verdicts;
pub use self::carried_sessions::CarriedSessions;
pub use self::carried_sessions::GainedSessions;
pub use self::conclusion::Decision;
pub use self::conclusion::Pass;
pub use self::denial::Denial;
pub use self::denial::DenialCause;
pub use self::denial::NewBan;
pub use self::denial::Penalty;
pub use self::display::ShownPlan;
pub use self::enter::ListChallenge;
pub use self::enter::RoutedRequest;
pub use self::enter::enter;
pub use self::met_limit::MetLimit;
pub use self::owned::OwnedBatch;
pub use self::plan::Plan;
pub use self::policy::Policy;
pub use self::report::FoundKey;
pub use self::report::LimitReport;
pub use self::report::LimitReports;
pub use self::report::RateReport;
pub use self::session::SessionChange;
pub use self::session::SessionHashes;
pub use self::session::SignIn;
pub use self::settle::PendingOutcome;
pub use self::sign_in::PendingSignIn;
pub use self::sign_in::SuccessOwner;
