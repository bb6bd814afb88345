//! The three kinds of forwarding headers, read into addresses.

use http::HeaderName;

/// The header in which a trusted proxy says who asks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ForwardingHeader {
    XForwardedFor,
    Forwarded,
    /// A header that holds one address, such as `cf-connecting-ip`.
    Single(HeaderName),
}
