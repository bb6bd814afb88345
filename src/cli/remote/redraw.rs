//! Draws the output of a command once, or again and again.

use std::thread;
use std::time::Duration;

use crate::cli::exit::Exit;
use crate::cli::output;

/// Where a command draws.
#[derive(Debug)]
pub(super) struct Screen;

impl Screen {
    /// Prints what `draw` returns; if `watches`, again every two seconds until it fails, or its reader or the user ends it.
    pub(super) fn draw(
        watches: bool,
        mut draw: impl FnMut() -> anyhow::Result<Result<String, Exit>>,
    ) -> anyhow::Result<Exit> {
        loop {
            let text = match draw()? {
                Ok(text) => text,
                Err(exit) => return Ok(exit),
            };
            if !watches {
                output::print(&text);
                return Ok(Exit::Done);
            }
            if output::redraw(&text).is_break() {
                return Ok(Exit::Done);
            }
            thread::sleep(INTERVAL);
        }
    }
}

const INTERVAL: Duration = Duration::from_secs(2);
