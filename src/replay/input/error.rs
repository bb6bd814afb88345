//! Why a log cannot be read.

use std::io;
use std::sync::Arc;

/// Why a log cannot be read. Files are named as they were on the command line.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{file}: cannot open it: {error}")]
    Open { file: Arc<str>, error: io::Error },
    #[error("{file}:{line}: cannot read on: {error}")]
    Read { file: Arc<str>, line: u64, error: io::Error },
    /// None of the first lines is of a known format.
    #[error(
        "{file}:{line}: this is no line of an access log that portcullis knows: {text}\nname the format with --log-format, \
         if it is one of portcullis, combined, caddy, traefik and haproxy"
    )]
    UnknownFormat { file: Arc<str>, line: u64, text: String },
    #[error("{file}:{line}: this is no line of the format that --log-format names: {text}")]
    OtherFormat { file: Arc<str>, line: u64, text: String },
    #[error("{file}:1: there is no line")]
    Empty { file: Arc<str> },
    #[error("{file}:{line}: no line up to here holds a request")]
    NoRequest { file: Arc<str>, line: u64 },
}
