//! How the end of a body is found.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyLength {
    /// The body has this many bytes.
    Known(u64),
    Chunked,
    /// The body ends when the connection closes.
    UntilClose,
}
