//! Why the call broke off in which a proxy describes a request, for the log line of that request.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::OnceLock;

/// The fault of one call, if it has one. Clones share it: whoever reads the call sets it, and the request that ends by it
/// records it.
#[derive(Clone, Debug, Default)]
pub struct CallFault(Arc<OnceLock<String>>);

impl CallFault {
    /// The first one counts: others follow from it.
    pub fn set(&self, fault: &impl Display) {
        self.0.get_or_init(|| fault.to_string());
    }

    pub(super) fn get(&self) -> Option<&str> {
        self.0.get().map(|fault| &**fault)
    }
}
