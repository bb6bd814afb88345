//! Why the call broke off in which a proxy describes a request, for the log line of that request.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use http::StatusCode;

/// The fault of one call, if it has one. Clones share it: whoever reads the call sets it, and the request that ends by it
/// records it.
#[derive(Clone, Debug, Default)]
pub struct CallFault(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    fault: OnceLock<Fault>,
    has_record: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Fault {
    pub(super) words: String,
    /// That of a request that ends by it undecided. `None`: it is no mistake, and the request has none.
    pub(super) status: Option<StatusCode>,
}

impl CallFault {
    /// The call is broken off by this mistake. The first one counts: others follow from it.
    pub fn set_mistake(&self, mistake: &impl Display, status: StatusCode) {
        self.0.fault.get_or_init(|| Fault { words: mistake.to_string(), status: Some(status) });
    }

    /// The proxy does not need the decision any more.
    pub fn set_ended(&self, reason: &impl Display) {
        self.0.fault.get_or_init(|| Fault { words: reason.to_string(), status: None });
    }

    /// Whether the caller is to record the call: it asks first, and has no request that records it.
    pub fn claim_record(&self) -> bool {
        !self.0.has_record.swap(true, Ordering::Relaxed)
    }

    /// Whether the call has a fault.
    pub fn is_set(&self) -> bool {
        self.0.fault.get().is_some()
    }

    pub(super) fn get(&self) -> Option<&Fault> {
        self.0.fault.get()
    }
}
