//! Why an application did not answer, and which status the client gets for it.

use std::error::Error;
use std::io;
use std::sync::Arc;

use http::StatusCode;

use crate::wire::http_client::root_cause;

/// Why a request got no answer. `server` is the last one tried.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ForwardError {
    pub server: Option<Arc<str>>,
    pub cause: FailureCause,
    /// The attempts before the last.
    pub previous_attempts: PreviousAttempts,
    /// Some of it may have been written to a server.
    pub is_sent: bool,
}

/// An error of a protocol library.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// The attempts before the last: the server as written in the configuration, and the failure as in
/// [`ForwardError::label`].
pub type PreviousAttempts = Vec<(Arc<str>, &'static str)>;

#[derive(Debug, thiserror::Error)]
pub enum FailureCause {
    #[error("no server is healthy")]
    NoHealthyServer,
    #[error("the server cannot be reached: {0}")]
    Connect(io::Error),
    #[error("connecting to the server took too long")]
    ConnectTimeout,
    /// The process has too many files open; no server is to blame.
    #[error("no descriptor is left for a connection to the server")]
    NoDescriptor,
    #[error("the server took too long to answer")]
    ResponseTimeout,
    #[error("the server closed the connection before it had answered: {0}")]
    Closed(BoxError),
    #[error("the server's answer is not HTTP: {0}")]
    InvalidResponse(BoxError),
    #[error("the server switched protocols without being asked to")]
    UnexpectedUpgrade,
    #[error("the request's body broke off: {}", root_cause(&**.0))]
    RequestBody(BoxError),
}

impl FailureCause {
    /// Copies the cause for another request that waited for the same connection.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Connect(error) => Self::Connect(io::Error::new(error.kind(), error.to_string())),
            Self::ConnectTimeout => Self::ConnectTimeout,
            Self::NoDescriptor => Self::NoDescriptor,
            other => Self::Connect(io::Error::other(other.to_string())),
        }
    }

    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::NoHealthyServer => "no_healthy_server",
            Self::Connect(_) => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::NoDescriptor => "no_descriptor",
            Self::ResponseTimeout => "response_timeout",
            Self::Closed(_) => "closed",
            Self::InvalidResponse(_) => "nonsense",
            Self::UnexpectedUpgrade => "unasked_upgrade",
            Self::RequestBody(_) => "request_body",
        }
    }
}

impl ForwardError {
    pub(super) fn at(
        server: &Arc<str>,
        cause: FailureCause,
        previous_attempts: PreviousAttempts,
        is_sent: bool,
    ) -> Self {
        Self { server: Some(Arc::clone(server)), cause, previous_attempts, is_sent }
    }

    /// 502: down, or its answer is not HTTP. 503: no server is healthy, or no descriptor is left. 504: too slow. 400: the
    /// client did not send its whole body.
    pub fn status(&self) -> StatusCode {
        match self.cause {
            FailureCause::NoHealthyServer | FailureCause::NoDescriptor => StatusCode::SERVICE_UNAVAILABLE,
            FailureCause::ConnectTimeout | FailureCause::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            FailureCause::Connect(_)
            | FailureCause::Closed(_)
            | FailureCause::InvalidResponse(_)
            | FailureCause::UnexpectedUpgrade => StatusCode::BAD_GATEWAY,
            FailureCause::RequestBody(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The cause as a metric label.
    pub fn label(&self) -> &'static str {
        self.cause.label()
    }
}

/// Why the body of an answer broke off. The client gets it cut short.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the server took too long to go on with its answer")]
    Stalled,
    #[error("the server cut its answer short: {0}")]
    Broken(BoxError),
}

/// Why an attempt got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    /// No connection could be made.
    #[error("{0}")]
    NotConnected(FailureCause),
    /// No byte of the request was written: it is as it was.
    #[error("the connection had ended: {0}")]
    Unwritten(BoxError),
    /// The server says that it did not process the request.
    #[error("the server refused it: {error}")]
    Refused {
        error: BoxError,
        /// The request is as it was. Otherwise more of its body was sent than is kept.
        is_whole: bool,
    },
    /// The connection ended before a byte of an answer.
    #[error("the connection ended: {0}")]
    Disconnected(BoxError),
    /// The body of the request broke off.
    #[error("the request's body broke off: {error}")]
    BodyBroken {
        error: BoxError,
        /// Some of the request may have been written.
        is_sent: bool,
    },
    #[error("{0}")]
    Failed(FailureCause),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cause: FailureCause, status: u16) {
        assert_eq!(
            ForwardError { server: None, cause, previous_attempts: PreviousAttempts::new(), is_sent: false }
                .status()
                .as_u16(),
            status
        );
    }

    #[test]
    fn down_is_502_unhealthy_503_slow_504() {
        check(FailureCause::NoHealthyServer, 503);
        check(FailureCause::NoDescriptor, 503);
        check(FailureCause::Connect(io::ErrorKind::ConnectionRefused.into()), 502);
        check(FailureCause::UnexpectedUpgrade, 502);
        check(FailureCause::ConnectTimeout, 504);
        check(FailureCause::ResponseTimeout, 504);
    }
}
