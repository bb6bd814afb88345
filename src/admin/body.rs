//! Reads the body of a request to the admin listener, within a size and a time.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::body::to_bytes;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::LengthLimitError;
use tokio::time::timeout;

use super::problem::Problem;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UnreadBody {
    TooLong,
    CutShort,
    TooSlow,
}

/// The whole body, of at most `most` bytes.
pub(super) async fn read(body: Body, most: usize) -> Result<Bytes, UnreadBody> {
    match timeout(PATIENCE, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) => Err(UnreadBody::TooLong),
        Ok(Err(_)) => Err(UnreadBody::CutShort),
        Err(_) => Err(UnreadBody::TooSlow),
    }
}

impl From<UnreadBody> for Problem {
    fn from(unread: UnreadBody) -> Self {
        match unread {
            UnreadBody::TooLong => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
            UnreadBody::CutShort => Self::bad_request("the body ended early"),
            UnreadBody::TooSlow => Self::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive within 10 s"),
        }
    }
}

/// Operators and their programs send few bytes, all at once.
const PATIENCE: Duration = Duration::from_secs(10);
