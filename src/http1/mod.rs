//! HTTP/1.1 on the wire: where a head ends, what its fields are, how a body is cut out of what follows it, and how one
//! is written. Knows no socket: what was read is an argument, what is to be written goes into an [`Outbox`].
//!
//! Grammar: RFC 9112. Both sides of the gateway use it: clients' connections are held to the letter of it, of
//! applications some old habits in heads are tolerated.

pub mod fields;

pub(crate) mod decoder;
mod encoder;
mod outbox;
mod scan;

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
pub use self::outbox::Outbox;
pub use self::scan::Scan;

/// How it is known where a body ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    /// After so many bytes.
    Known(u64),
    Chunked,
    /// With the connection.
    ToTheEnd,
}

/// What was read is not HTTP/1.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Malformed {
    #[error("the size of a chunk is none")]
    ChunkSize,
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    #[error("what stands beside the sizes of chunks is too long")]
    Extensions,
    #[error("a field is malformed")]
    Field,
    #[error("the fields behind the body are too long")]
    Trailers,
}

/// The connection ended before the body did, or the body before its length.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the body is shorter than announced")]
pub struct CutShort;
