//! Why the body of a request broke off.

use crate::http1::grammar::IncompleteBody;
use crate::http1::grammar::InvalidMessage;

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum IncomingBodyError {
    #[error("{0}")]
    Invalid(#[from] InvalidMessage),
    #[error("{0}")]
    Incomplete(#[from] IncompleteBody),
    #[error("{0}")]
    Stream(#[from] h2::Error),
}
