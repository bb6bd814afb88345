//! Where commands print: the only place of the crate that does.

use std::fmt;
use std::io::IsTerminal;
use std::io::Write;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::config;
use crate::config::Diagnostic;

/// What a command has to say.
pub(super) fn say(text: &str) {
    // Whoever closed the pipe has read enough.
    drop(writeln!(anstream::stdout(), "{text}"));
}

/// The same for what ends its lines itself.
pub(super) fn say_as_is(text: &str) {
    drop(write!(anstream::stdout(), "{text}"));
}

/// The same of what goes on, for as long as somebody reads it.
pub(super) fn go_on_saying(text: &str) -> ControlFlow<()> {
    let mut out = anstream::stdout();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
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

/// Rows of texts below their titles, in columns that are as wide as they must be.
#[derive(Clone, Debug)]
pub(super) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(super) fn new(titles: [&str; COLUMNS]) -> Self {
        Self { rows: vec![titles.map(str::to_owned)] }
    }

    pub(super) fn row(&mut self, row: [String; COLUMNS]) {
        self.rows.push(row);
    }
}

impl<const COLUMNS: usize> fmt::Display for Table<COLUMNS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        });
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            write!(f, "{}{}", if number > 0 { "\n" } else { "" }, line.trim_end())?;
        }
        Ok(())
    }
}
