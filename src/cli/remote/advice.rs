//! `portcullis advice`: prints what a running gateway finds misconfigured.

use serde::Deserialize;

use super::redraw::ViewArguments;
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
    #[command(flatten)]
    view: ViewArguments,
}

/// One piece of advice, as the gateway tells it.
#[derive(Debug, Deserialize)]
pub(super) struct AdviceView {
    pub(super) message: String,
    since: String,
    help: String,
}

pub(in crate::cli) fn advice(Arguments { view }: &Arguments) -> anyhow::Result<Exit> {
    view.show("/api/v1/advice", |advice: &Vec<AdviceView>| words(advice))
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
