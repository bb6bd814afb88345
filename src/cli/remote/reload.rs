//! `portcullis reload`: makes a running gateway read its configuration anew.

use http::Method;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::client::LONG_TIMEOUT;
use super::gateway::RemoteArguments;
use super::gateway::read_response;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::config::Diagnostic;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis reload
  portcullis reload --format json | jq -r '.mistakes[]? | \"\\(.file):\\(.line): \\(.message)\"'

If anything is wrong, the running configuration stays whole, and the mistakes are printed.
With --format json: {loaded}, or {mistakes} as `portcullis check --format json` prints them.
Exit codes: 0 the configuration on disk is in force, 1 it is not, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

/// What is wrong, as the gateway tells it.
#[derive(Debug, Deserialize)]
struct Refusal {
    detail: String,
    mistakes: Vec<MistakeView>,
}

#[derive(Debug, Deserialize)]
struct MistakeView {
    file: String,
    line: usize,
    column: usize,
    message: String,
    help: Option<String>,
}

pub(in crate::cli) fn reload(Arguments { remote }: &Arguments) -> anyhow::Result<Exit> {
    let (client, answer) = match remote.gateway.answer(Method::POST, "/api/v1/reload", None, LONG_TIMEOUT)? {
        Ok(answered) => answered,
        Err(exit) => return Ok(exit),
    };
    if answer.status == StatusCode::UNPROCESSABLE_ENTITY
        && let Ok(problem) = serde_json::from_slice::<Value>(&answer.body)
    {
        print_refusal(problem, remote.format)?;
        return Ok(Exit::Wrong);
    }
    let content = match read_response(&client, &answer) {
        Ok(content) => content,
        Err(exit) => return Ok(exit),
    };
    match remote.format {
        Format::Json => output::print_json(&content)?,
        Format::Human => {
            let loaded = content["loaded"].as_str().unwrap_or_default();
            output::print(&format!("reloaded: the configuration on disk is in force since {loaded}"))?;
        }
    }
    Ok(Exit::Done)
}

fn print_refusal(problem: Value, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        output::print_json(&json!({"mistakes": problem["mistakes"]}))?;
    }
    let refusal: Refusal = serde_json::from_value(problem)?;
    if format == Format::Human {
        let mistakes: Vec<Diagnostic> = refusal.mistakes.into_iter().map(MistakeView::into_diagnostic).collect();
        output::print_mistakes(&mistakes);
    }
    output::print_error(&format!("not reloaded: {}", refusal.detail));
    Ok(())
}

impl MistakeView {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { file, line, column, message, help } = self;
        Diagnostic { help, ..Diagnostic::new(file, line, column, message) }
    }
}
