//! Decides what an application's answer means: success, failure, or neither.
//!
//! [`OutcomeRule::of_head`] decides by the head of the answer. If the head is not enough, an [`Inspection`] reads the
//! body while it streams.

pub mod body;
pub mod inspection;
pub mod json;
pub mod matchers;
pub mod rule;
pub mod set_cookie;
pub mod status;

pub use self::body::BodyPattern;
pub use self::body::InvalidBodyPattern;
pub use self::inspection::Inspected;
pub use self::inspection::Inspection;
pub use self::matchers::Matchers;
pub use self::rule::Outcome;
pub use self::rule::OutcomeRule;
pub use self::status::InvalidStatus;
pub use self::status::StatusSet;
