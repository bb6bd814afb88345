//! What happens to a request beyond a limit.

use bytes::Bytes;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;

/// What a limit does when it is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// Denied, with a response of its own or the route's.
    Deny(Option<Box<DenyResponse>>),
}

/// How a denial looks. What is `None` is as everywhere else: 429 with the built-in page or problem document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenyResponse {
    pub status: Option<StatusCode>,
    pub body: Option<DenyBody>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `Location`; the status is 303 unless another is given.
    pub redirect: Option<HeaderValue>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DenyBody {
    /// Sent as it is, to everyone.
    Verbatim { content_type: HeaderValue, content: Bytes },
    /// An HTML page for browsers; programs get the problem document.
    Page(Bytes),
}
