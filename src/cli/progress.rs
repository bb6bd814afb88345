//! How far a command has read its logs, on a terminal only.

use std::time::Duration;

use super::output;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::replay::Position;
use crate::units::counted;

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
        let shown = output::stderr_is_terminal().then(|| clock.now());
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
        output::print_progress(&text);
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if self.is_visible {
            output::print_progress("");
        }
    }
}

/// Often enough to be seen moving.
const PAUSE: Duration = Duration::from_millis(100);

/// The width of the bar in letters.
const BAR: u64 = 30;
