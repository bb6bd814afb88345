//! Mistakes in a request, and in the call that describes it.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use http::StatusCode;

/// Why a request is refused before any rule is applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadRequest {
    #[error("this method is not allowed")]
    Method,
    #[error("the request target is malformed")]
    Target,
    #[error("the scheme of the request target is neither http nor https")]
    Scheme,
    #[error("the Host header is missing")]
    NoHost,
    #[error("there is more than one Host header")]
    SeveralHosts,
    #[error("the Host header is malformed")]
    Host,
    #[error("the Host header differs from the request target")]
    HostMismatch,
    #[error("the Host header differs from the name in the TLS handshake")]
    Misdirected,
    #[error("the Transfer-Encoding is not exactly `chunked`")]
    TransferEncoding,
    #[error("the length of the body is ambiguous")]
    ConflictingLengths,
    #[error("the Expect header is not 100-continue")]
    Expectation,
    #[error("this gateway has forwarded the request already")]
    Loop,
    #[error("there are too many headers")]
    TooManyFields,
    #[error("the body is too long")]
    TooLong,
    #[error("the body is malformed")]
    Body,
    #[error("the body took too long to arrive")]
    Slow,
    #[error("too many bodies are being read on this connection")]
    NoRoom,
}

impl BadRequest {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// The fault of one call, if it has one. Clones share it: the reader of the call sets it, and the request that it ends
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
    /// The status of a request that the fault ends before a decision. `None`: the fault is no mistake, and the request
    /// has no status.
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
