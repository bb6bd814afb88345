//! Why a response is invalid.

/// The response is not HTTP/1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidResponse {
    #[error("its first line is not a status line")]
    StatusLine,
    #[error("its head is malformed")]
    Head,
    #[error("its head is too long")]
    TooLong,
    #[error("it sends informational responses without end")]
    TooManyInterim,
    #[error("its head has too many fields")]
    TooManyFields,
    #[error("it does not say how long its body is")]
    BodyLength,
    #[error("its Transfer-Encoding is not one plain `chunked`")]
    Coding,
}
