//! How a session of HTTP/1.1 ends.

use http::StatusCode;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::listen) enum SessionEnd {
    /// The last response is written. What the client still sends is not read.
    Finished,
    /// This status answered an invalid head.
    Refused(StatusCode),
    /// The client has left, between two requests or within one, or the response broke off.
    Broken,
    /// The connection speaks another protocol now.
    Upgraded,
}
