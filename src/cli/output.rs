//! Printing: the only file of the crate that writes to standard output and standard error.

use std::fmt;
use std::io::ErrorKind;
use std::io::IsTerminal;
use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Context;
use serde::Serialize;

use crate::config;
use crate::config::Diagnostic;

/// Prints the output of a command and ends the line.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    print_as_is(&format!("{text}\n"))
}

/// Prints text that ends its lines itself.
pub(super) fn print_as_is(text: &str) -> anyhow::Result<()> {
    // A reader that has closed the pipe wants no more, and nothing is wrong.
    write(text).map(|_| ())
}

/// Prints a line of a stream at once. Breaks when the reader has closed the pipe.
pub(super) fn print_event_line(text: &str) -> anyhow::Result<ControlFlow<()>> {
    write(&format!("{text}\n"))
}

/// Replaces what is on the screen. Breaks when the reader has closed the pipe.
pub(super) fn redraw(text: &str) -> anyhow::Result<ControlFlow<()>> {
    let clear = if std::io::stdout().is_terminal() { "\u{1b}[H\u{1b}[2J" } else { "" };
    print_event_line(&format!("{clear}{text}"))
}

/// Writes to standard output, and through its buffer: what stays there is lost without an error. Breaks when the reader
/// has closed the pipe.
fn write(text: &str) -> anyhow::Result<ControlFlow<()>> {
    let mut out = anstream::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Without control characters a text cannot move a terminal's cursor or begin another line.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// Prints JSON, for programs.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value).expect("the keys of all printed values are text");
    print(&json)
}

/// Prints an error message.
pub(super) fn print_error(text: &str) {
    drop(writeln!(anstream::stderr(), "portcullis: {text}"));
}

/// Replaces the line of progress on standard error; an empty one removes it.
pub(super) fn print_progress(text: &str) {
    let mut out = anstream::stderr();
    drop(write!(out, "\r\x1b[K{text}").and_then(|()| out.flush()));
}

pub(super) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Prints the mistakes of a configuration that cannot be used, to standard error.
pub(super) fn print_mistakes(mistakes: &[Diagnostic]) {
    let text = config::render(mistakes, std::io::stderr().is_terminal());
    drop(write!(anstream::stderr(), "{text}"));
}

/// Prints what `check` has found, to standard output.
pub(super) fn print_report(mistakes: &[Diagnostic]) -> anyhow::Result<()> {
    print_as_is(&config::render(mistakes, std::io::stdout().is_terminal()))
}

/// `9,812`
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rows below their titles, in columns as wide as their widest cell.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_in_groups_of_three() {
        let shown = [0, 999, 1000, 9812, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "9,812", "1,234,567"]);
    }
}
