//! Why a log cannot be read.

use std::io;
use std::sync::Arc;

use super::unreadable_line::UnreadableLine;
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
    /// No line is of a known format. These are the first ones.
    #[error(
        "{}\nname the format with --log-format, or the fields of JSON with --fields{}",
        listed(.lines, "an access log that portcullis knows"),
        addresses_hint(.lines)
    )]
    UnknownFormat { lines: Vec<UnreadableLine> },
    #[error("{}{}", listed(.lines, "the format that --log-format names"), addresses_hint(.lines))]
    OtherFormat { lines: Vec<UnreadableLine> },
    /// The fields that the operator has named are in no line.
    #[error(
        "{file}:1: --fields names the fields of JSON lines, but the lines are of the format {format}, which has none of \
         these names: correct the names, or leave out --fields"
    )]
    UnusedFields { file: Arc<str>, format: &'static str },
    #[error("{file}:1: there is no line")]
    Empty { file: Arc<str> },
    #[error("{file}:{line}: no line up to here holds a request")]
    NoRequest { file: Arc<str>, line: u64 },
}

/// One below the other, each with its file and number.
fn listed(lines: &[UnreadableLine], format: &str) -> String {
    let lines = lines.iter().enumerate().map(|(place, UnreadableLine { file, line, text })| match place {
        0 => format!("{file}:{line}: this is no line of {format}: {text}"),
        _ => format!("{file}:{line}: nor is this: {text}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn addresses_hint(lines: &[UnreadableLine]) -> String {
    let has_addresses = lines.iter().any(|line| begins_with_addresses(&line.text));
    if has_addresses { format!("\n{SEVERAL_ADDRESSES}") } else { String::new() }
}

/// What to do about a line that begins with a list of addresses.
pub(in crate::replay) const SEVERAL_ADDRESSES: &str = "a line that begins with several addresses does not say which of \
     them is the client: let the proxy log the one that it has found";
