//! Printing: the only file of the crate that writes to standard output and standard error.

use std::fmt;
use std::io::{ErrorKind, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::config;
use crate::config::Diagnostic;
use crate::replay::Position;
use crate::words::clock::{Clock, Timestamp};
use crate::words::units::counted;

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

/// Prints a message about something that is as it should be, to standard error.
pub(super) fn print_note(text: &str) {
    print_error(text);
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

// How far a command has read its logs, on a terminal only.

/// Often enough to be seen moving.
const PAUSE: Duration = Duration::from_millis(100);

/// The width of the bar in letters.
const BAR: u64 = 30;

/// One line on standard error, which the next one replaces.
#[derive(Debug)]
pub(super) struct Progress {
    clock: Clock,
    /// When it was shown last; `None` where standard error is no terminal.
    shown: Option<Timestamp>,
    is_visible: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        let clock = Clock::system();
        let shown = stderr_is_terminal().then(|| clock.now());
        Self { clock, shown, is_visible: false }
    }

    pub(super) fn show(&mut self, position: Position) {
        let Some(shown) = self.shown else { return };
        let now = self.clock.now();
        if now.since(shown) < PAUSE {
            return;
        }
        (self.shown, self.is_visible) = (Some(now), true);
        let Position { lines, bytes, all_bytes } = position;
        let lines = counted(lines, "line");
        let text = match all_bytes {
            Some(all) => {
                let filled = usize::try_from(bytes.min(all) * BAR / all.max(1)).unwrap_or_default();
                let percent = bytes.min(all) * 100 / all.max(1);
                format!("[{:30}] {percent:3} %  {lines}", "#".repeat(filled))
            }
            None => lines,
        };
        print_progress(&text);
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if self.is_visible {
            print_progress("");
        }
    }
}
