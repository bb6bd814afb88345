//! Where commands print: the only place of the crate that does.

use std::io::IsTerminal;
use std::io::Write;

use serde::Serialize;

use crate::config;
use crate::config::Diagnostic;

/// What a command has to say.
pub(super) fn say(text: &str) {
    // Whoever closed the pipe has read enough.
    drop(writeln!(anstream::stdout(), "{text}"));
}

/// The same for programs.
pub(super) fn say_json(value: &impl Serialize) {
    let json = serde_json::to_string_pretty(value).expect("what commands print has text for keys");
    say(&json);
}

/// What went wrong.
pub(super) fn complain(text: &str) {
    drop(writeln!(anstream::stderr(), "portcullis: {text}"));
}

/// Mistakes of a configuration that was to be used.
pub(super) fn complain_of(mistakes: &[Diagnostic]) {
    let text = config::render(mistakes, std::io::stderr().is_terminal());
    drop(write!(anstream::stderr(), "{text}"));
}

/// Mistakes of a configuration that was to be checked.
pub(super) fn report(mistakes: &[Diagnostic]) {
    let text = config::render(mistakes, std::io::stdout().is_terminal());
    drop(write!(anstream::stdout(), "{text}"));
}
