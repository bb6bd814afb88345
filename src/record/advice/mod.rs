//! What looks misconfigured, judged from counters once a second. A request pays for it only where it is unusual: one counter
//! where it lacks a part of a key, and one where a peer that is no trusted proxy names its client.

mod advisor;
mod kind;
mod observed;
mod share;

#[cfg(test)]
mod tests;

pub use self::advisor::Advisor;
pub use self::kind::Advice;
pub use self::kind::AdviceKind;
pub use self::observed::Observed;
pub use self::observed::ObservedLimit;
pub use self::observed::ObservedRoute;
