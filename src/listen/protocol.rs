//! The versions of HTTP that clients speak.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}
