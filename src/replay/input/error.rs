//! Why a log cannot be read.

use std::io;
use std::sync::Arc;

use crate::replay::formats::begins_with_addresses;

/// Why a log cannot be read. Files are named as they were on the command line.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{file}: cannot open it: {error}")]
    Open { file: Arc<str>, error: io::Error },
    #[error("{file}: standard input is one log, and can be read once")]
    Twice { file: Arc<str> },
    #[error("{file}:{line}: cannot read on: {error}")]
    Read { file: Arc<str>, line: u64, error: io::Error },
    /// No line is of a known format. This is the first one.
    #[error(
        "{file}:{line}: this is no line of an access log that portcullis knows: {text}\nname the format with --log-format, \
         if it is one of portcullis, combined, caddy, traefik and haproxy{}",
        addresses_hint(.text)
    )]
    UnknownFormat { file: Arc<str>, line: u64, text: String },
    #[error("{file}:{line}: this is no line of the format that --log-format names: {text}{}", addresses_hint(.text))]
    OtherFormat { file: Arc<str>, line: u64, text: String },
    #[error("{file}:1: there is no line")]
    Empty { file: Arc<str> },
    #[error("{file}:{line}: no line up to here holds a request")]
    NoRequest { file: Arc<str>, line: u64 },
}

fn addresses_hint(line: &str) -> String {
    if begins_with_addresses(line) { format!("\n{SEVERAL_ADDRESSES}") } else { String::new() }
}

/// What to do about a line that begins with a list of addresses.
pub(in crate::replay) const SEVERAL_ADDRESSES: &str = "a line that begins with several addresses does not say which of \
     them is the client: let the proxy log the one that it has found";
