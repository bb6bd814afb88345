//! May it pass: three pure steps, `enter` → `plan` → `conclude`.
//!
//! 1. [`enter()`] looks at the head alone: lists, routes, and whether the body must be read.
//! 2. [`Entry::plan`] extracts the keys and says what is to be charged, as a [`Batch`] that a store decides in one step.
//! 3. [`Plan::conclude`] turns the store's verdicts into a [`Decision`].

pub mod batch;
pub mod by_hand;
pub mod conclude;
pub mod concluded;
pub mod device;
pub mod enter;
pub mod explain;
pub mod instead;
pub mod named;
pub mod owned;
pub mod plan;
pub mod policy;
pub mod settle;
mod source;
pub mod ticket;

pub use self::batch::Batch;
pub use self::batch::Charge;
pub use self::batch::Settlement;
pub use self::batch::Verdict;
pub use self::concluded::Decision;
pub use self::concluded::Denial;
pub use self::concluded::Pass;
pub use self::enter::Entry;
pub use self::enter::enter;
pub use self::owned::OwnedBatch;
pub use self::plan::Plan;
pub use self::policy::Policy;
pub use self::settle::Pending;
