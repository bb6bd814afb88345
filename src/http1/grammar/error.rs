//! Why bytes are not HTTP/1.1.

/// The bytes that were read are not HTTP/1.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidMessage {
    #[error("the size of a chunk is not a number")]
    ChunkSize,
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    #[error("the chunk extensions are too long")]
    Extensions,
    #[error("a field is malformed")]
    Field,
    #[error("the trailers are too long")]
    Trailers,
}

/// The connection ended before the body did, or the body ended before its announced length.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the body is shorter than announced")]
pub struct IncompleteBody;
