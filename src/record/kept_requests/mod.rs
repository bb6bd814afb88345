//! Why the newest requests were denied, delayed, challenged or banned: who asked, which limits with which keys they met, what
//! was counted and when it frees, in data and as a sentence.
//!
//! A request that passes at once is not kept and pays nothing.

mod kept_request;
mod limit_facts;
mod ring;
mod sentence;
mod story;
mod viewer;

pub use self::kept_request::DecisionFacts;
pub use self::kept_request::KeptLimit;
pub use self::kept_request::KeptRequest;
pub(in crate::record) use self::kept_request::MAX_PATH;
pub(in crate::record) use self::kept_request::cut;
pub use self::limit_facts::LimitFacts;
pub use self::ring::KeptRequests;
pub use self::story::LimitStory;
pub use self::story::RateStory;
pub use self::story::RequestStory;
pub use self::viewer::Viewer;
