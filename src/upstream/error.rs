//! Why an application did not answer: whose fault it is, and which status says so.

use std::sync::Arc;

use http::StatusCode;

/// A request that got no answer. `server` is the last one tried.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ForwardError {
    pub server: Option<Arc<str>>,
    pub cause: Cause,
}

#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error("no server is healthy")]
    NoHealthyServer,
}

impl ForwardError {
    /// 502 down or nonsense, 503 no healthy server, 504 too slow; a fault of the client's body is 400, 408 or 413.
    pub fn status(&self) -> StatusCode {
        todo!()
    }

    /// The cause as a metric label.
    pub fn label(&self) -> &'static str {
        todo!()
    }
}
