//! Why the newest requests were denied, delayed, challenged or banned: who asked, which limits with which keys they
//! met, the counts and when they expire, as data and as a sentence.
//!
//! A request that passes at once is not kept and pays nothing. A denied request pays little: text is written only when
//! it is read, and the memory of a dropped request is reused.

mod kept_request;
mod ring;
#[cfg(test)]
pub(crate) mod samples;
mod sentence;
mod story;

pub(in crate::record) use self::kept_request::agent_text;
pub use self::kept_request::{DecisionFacts, KeptCause, KeptLimit, KeptRequest};
pub use self::ring::KeptRequests;
pub use self::story::{LimitFacts, LimitStory, PolicyFacts, RateStory, RequestStory, RouteFacts, Viewer};
