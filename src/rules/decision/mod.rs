//! Decides whether a request may pass, in three pure steps: `enter` → `plan` → `conclude`.
//!
//! 1. [`enter()`] looks at the head alone: lists, routes, and whether the gateway must read the body.
//! 2. [`RoutedRequest::plan`] extracts the keys and says what is to be charged, as a [`Batch`] that a store decides in
//!    one step.
//! 3. [`Plan::conclude`] turns the store's verdicts into a [`Decision`].

pub mod batch;
pub mod carried_sessions;
pub mod conclude;
pub mod denial;
pub mod descriptors;
pub mod enter;
pub mod explain;
pub mod known_client;
pub mod operator;
pub mod plan;
pub mod policy;
pub mod report;

pub use self::batch::{
    Batch, BatchOf, Charge, ChargeOf, Grounds, OwnedBatch, OwnedSettlement, OwnedVerdict, SessionChange, SessionHashes,
    Settlement, SignIn, Verdict, Verdicts,
};
pub use self::carried_sessions::{CarriedSessions, GainedSessions};
pub use self::conclude::{Decision, Pass};
pub use self::denial::{Denial, DenialCause, MetLimit, NewBan, Penalty};
pub use self::enter::{ListChallenge, RoutedRequest, enter};
pub use self::known_client::{PendingOutcome, PendingSignIn, SuccessOwner};
pub use self::plan::Plan;
pub use self::policy::Policy;
pub use self::report::{FoundKey, LimitReport, LimitReports, RateReport, ShownPlan};
