//! `Expect: 100-continue`, towards the servers.

use std::fmt;
use std::sync::Arc;

use http::Request;

/// What is done when a server asks for the body of a request that said it would wait for that. An extension of the
/// request, heeded over HTTP/1.1.
#[derive(Clone)]
pub struct OnContinue(Arc<dyn Fn() + Send + Sync>);

impl OnContinue {
    pub fn new(act: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(act))
    }

    /// A server has said 100 to this request.
    pub(super) fn act<B>(request: &Request<B>) {
        if let Some(Self(act)) = request.extensions().get() {
            act();
        }
    }
}

impl fmt::Debug for OnContinue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnContinue").finish_non_exhaustive()
    }
}
