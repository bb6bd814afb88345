//! `portcullis advice`: prints what a running gateway finds misconfigured.

use http::Method;
use serde::Deserialize;

use super::gateway::RemoteArguments;
use super::redraw::Screen;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis advice
  portcullis advice --format json | jq -r '.[].message'

What looks wrong in the last thousand requests, and what `portcullis check` warns of, each with the line to write.
Exit codes: 0 done, 1 the gateway refused the request, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    /// Draw it again every two seconds
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// One piece of advice, as the gateway tells it.
#[derive(Debug, Deserialize)]
pub(super) struct AdviceView {
    pub(super) message: String,
    since: String,
    help: String,
}

pub(in crate::cli) fn advice(Arguments { watch, remote }: &Arguments) -> anyhow::Result<Exit> {
    Screen::draw(*watch, || {
        let answer = match remote.gateway.ask(Method::GET, "/api/v1/advice")? {
            Ok(answer) => answer,
            Err(exit) => return Ok(Err(exit)),
        };
        Ok(Ok(match remote.format {
            Format::Json => serde_json::to_string_pretty(&answer)?,
            Format::Human => words(&serde_json::from_value::<Vec<AdviceView>>(answer)?),
        }))
    })
}

fn words(advice: &[AdviceView]) -> String {
    if advice.is_empty() {
        return "nothing looks wrong".to_owned();
    }
    let words = advice.iter().map(|AdviceView { message, since, help }| {
        format!("{}\n  since {}\n  {}", output::plain(message), output::plain(since), output::plain(help))
    });
    words.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_printed_with_what_to_write() {
        let one = AdviceView { message: "half lack it\u{1b}".into(), since: "then".into(), help: "write this".into() };
        assert_eq!(words(&[one]), "half lack it\n  since then\n  write this");
        assert_eq!(words(&[]), "nothing looks wrong");
    }
}
