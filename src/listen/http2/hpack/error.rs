//! Why a block of fields cannot be decoded.

/// The block is not HPACK. The blocks behind it on the same connection could not be decoded either.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the fields cannot be decoded")]
pub(in crate::listen::http2) struct InvalidHpack;
