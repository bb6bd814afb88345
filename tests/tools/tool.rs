//! Runs a program and keeps its output.

use std::path::Path;
use std::process::{Command, Stdio};

/// What a program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) errors: String,
    pub(crate) code: Option<i32>,
}

/// Runs it in that folder to its end, for which it has two minutes.
#[track_caller]
pub(crate) fn run(folder: &Path, program: &str, arguments: &[&str]) -> Said {
    let output = Command::new("timeout")
        .args(["120", program])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("timeout is part of every system");
    let code = output.status.code();
    assert!(!matches!(code, Some(124..=127)), "{program} did not run to its end: ./tests/run installs it: {code:?}");
    Said { text: plain(&output.stdout), errors: plain(&output.stderr), code }
}

/// The text, without the colours of a terminal.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut pieces = text.split('\x1b');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|letter: char| letter.is_ascii_alphabetic()).map_or(piece.len(), |end| end + 1);
        plain.push_str(&piece[end..]);
    }
    plain
}
