//! How a session of HTTP/1.1 ends.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::listen) enum SessionEnd {
    /// The last response is written. What the client still sends is not read.
    Finished,
    /// A refusal answered an invalid head.
    Refused,
    /// The client has left, between two requests or within one, or the response broke off.
    Broken,
    /// The connection speaks another protocol now.
    Upgraded,
}
