//! Why the newest requests were denied, delayed, challenged or banned: who asked, which limits with which keys they met, what
//! was counted and when it frees, in data and as a sentence.
//!
//! A request that passes at once is not kept and pays nothing. One that is denied pays little: nothing is written as text
//! before somebody reads it, and the memory is that of a request that is kept no longer.

mod kept_request;
mod kept_text;
mod limit_facts;
mod policy_facts;
mod ring;
#[cfg(test)]
pub(crate) mod samples;
mod sentence;
mod shard;
mod spare;
mod story;
mod viewer;

pub use self::kept_request::DecisionFacts;
pub use self::kept_request::KeptCause;
pub use self::kept_request::KeptLimit;
pub use self::kept_request::KeptRequest;
pub use self::limit_facts::LimitFacts;
pub use self::policy_facts::PolicyFacts;
pub use self::policy_facts::RouteFacts;
pub use self::ring::KeptRequests;
pub use self::story::LimitStory;
pub use self::story::RateStory;
pub use self::story::RequestStory;
pub use self::viewer::Viewer;
