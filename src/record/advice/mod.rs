//! What looks misconfigured, judged from counters once a second. A request pays for it only where it is unusual: one counter
//! where it lacks a part of a key, and one where a peer that is no trusted proxy names its client.

mod advisor;
mod finding;
mod judgement;
mod kind;
mod observed;
mod share;
mod untrusted_forwarding;

#[cfg(test)]
mod tests;

pub use self::advisor::Advisor;
pub use self::kind::Advice;
pub use self::kind::AdviceKind;
pub use self::observed::BusiestClient;
pub use self::observed::Observed;
pub use self::observed::ObservedLimit;
pub use self::observed::ObservedRoute;
pub use self::observed::UnavailableKeys;
pub use self::observed::UnseenRoute;
pub use self::untrusted_forwarding::UntrustedForwarding;
pub use self::untrusted_forwarding::UntrustedPeer;
