//! Shows an answer of the gateway once, or again and again.

use std::thread;
use std::time::Duration;

use http::Method;
use serde::de::DeserializeOwned;

use super::client::TIMEOUT;
use super::gateway::RemoteArguments;
use super::gateway::read_response;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;

/// The arguments of a command that shows one answer of the gateway.
#[derive(Debug, clap::Args)]
pub(super) struct ViewArguments {
    /// Draw it again every two seconds
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

impl ViewArguments {
    /// Asks for `target`, and prints the answer as JSON or in words. With `--watch` again every two seconds, until the
    /// gateway does not answer, or the reader or the user ends it.
    pub(super) fn show<T: DeserializeOwned>(&self, target: &str, words: impl Fn(&T) -> String) -> anyhow::Result<Exit> {
        loop {
            let (client, response) = match self.remote.gateway.answer(Method::GET, target, None, TIMEOUT)? {
                Ok(answered) => answered,
                Err(exit) => return Ok(exit),
            };
            let answer = match read_response(&client, &response) {
                Ok(answer) => answer,
                Err(exit) => return Ok(exit),
            };
            let text = match self.remote.format {
                Format::Json => serde_json::to_string_pretty(&answer)?,
                Format::Human => with_missing(words(&serde_json::from_value(answer)?), response.missing.as_deref()),
            };
            if !self.watch {
                output::print(&text)?;
                return Ok(Exit::Done);
            }
            if output::redraw(&text)?.is_break() {
                return Ok(Exit::Done);
            }
            thread::sleep(INTERVAL);
        }
    }
}

/// Says which gateways did not answer the one that was asked.
fn with_missing(words: String, missing: Option<&str>) -> String {
    let Some(missing) = missing else { return words };
    let verb = if missing.contains(',') { "do" } else { "does" };
    format!("{words}\n\nwithout {}, which {verb} not answer", output::plain(missing))
}

const INTERVAL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_that_did_not_answer_are_named_below() {
        assert_eq!(with_missing("x".to_owned(), None), "x");
        assert_eq!(with_missing("x".to_owned(), Some("a")), "x\n\nwithout a, which does not answer");
        assert_eq!(with_missing("x".to_owned(), Some("a, b")), "x\n\nwithout a, b, which do not answer");
    }
}
