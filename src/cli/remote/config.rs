//! Commands about the gateway as a whole: `portcullis reload` makes it read its configuration anew, `portcullis config` prints
//! the configuration in force, and `portcullis health` asks whether it is healthy.

use std::path::PathBuf;

use anyhow::Context;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{AdminClient, AdminResponse, LONG_TIMEOUT, TIMEOUT};
use super::gateway::{RemoteArguments, read_response, report_unreachable};
use crate::api::problem::{Mistake, ProblemDocument, ReloadedResponse};
use crate::api::{LivenessResponse, ReadinessResponse, ReadinessWord};
use crate::cli::output;
use crate::cli::program::{Exit, Format};
use crate::config;
use crate::config::Diagnostic;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis reload
  portcullis reload --format json | jq -r '.mistakes[]? | \"\\(.file):\\(.line): \\(.message)\"'

If anything is wrong, the running configuration stays whole, and the mistakes are printed.
A changed store waits for the next start: what waits is named, and the store that runs stays in force.
With --format json: {loaded}, {loaded, waiting}, or {mistakes} as `portcullis check --format json` prints them.
Exit codes: 0 the configuration on disk is in force, 1 it is not, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct ReloadArguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

pub(in crate::cli) fn reload(ReloadArguments { remote }: &ReloadArguments) -> anyhow::Result<Exit> {
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
            let ReloadedResponse { loaded, waiting } = serde_json::from_value(content)?;
            let but = match &waiting[..] {
                [] => String::new(),
                [one] => format!(", but for {one}, which waits for the next start"),
                several => format!(", but for {}, which wait for the next start", several.join(", ")),
            };
            output::print(&format!("reloaded: the configuration on disk is in force since {loaded}{but}"))?;
        }
    }
    Ok(Exit::Done)
}

fn print_refusal(problem: Value, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        output::print_json(&json!({"mistakes": problem["mistakes"]}))?;
    }
    let refusal: ProblemDocument = serde_json::from_value(problem)?;
    if format == Format::Human {
        let mistakes: Vec<Diagnostic> = refusal.mistakes.into_iter().flatten().map(diagnostic).collect();
        output::print_mistakes(&mistakes);
    }
    output::print_error(&format!("not reloaded: {}", refusal.detail));
    Ok(())
}

fn diagnostic(Mistake { file, line, column, message, help, .. }: Mistake) -> Diagnostic {
    Diagnostic { help, ..Diagnostic::new(file, line, column, message) }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis config
  portcullis config --format json | jq '.routes[].name'
  portcullis config | diff - portcullis.yaml

The configuration as the gateway read it, with the environment's values in place and secrets masked; YAML, or JSON with
--format json. What is left out has its default.
Exit codes: 0 done, 1 the gateway refused the request, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct ConfigArguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

// `portcullis config`: prints the configuration that a running gateway has in force.

pub(in crate::cli) fn config(ConfigArguments { remote }: &ConfigArguments) -> anyhow::Result<Exit> {
    let media_type = match remote.format {
        Format::Human => "application/yaml",
        Format::Json => "application/json",
    };
    let text = match remote.gateway.ask_for_text("/api/v1/config", media_type)? {
        Ok(text) => text,
        Err(exit) => return Ok(exit),
    };
    output::print(text.trim_end())?;
    Ok(Exit::Done)
}

// `portcullis health`: asks a running gateway whether it is healthy.

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis health
  portcullis health --admin http://10.0.0.5:9090
  portcullis health -c /etc/portcullis/portcullis.yaml

It needs no token. A gateway that is alive and not ready for requests, because it drains or Redis is away, says so; it is still
healthy, since starting it anew would mend neither.
Exit codes: 0 the gateway is healthy, 1 it is not, 3 it could not be reached.")]
pub(in crate::cli) struct HealthArguments {
    /// Take the address from this configuration instead
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
}

pub(in crate::cli) fn health(HealthArguments { config, remote }: &HealthArguments) -> anyhow::Result<Exit> {
    let client = match config {
        None => remote.gateway.client()?,
        Some(file) => match config::load(file) {
            Ok(settings) => {
                let admin = settings.admin.with_context(|| format!("{} has no `admin` section", file.display()))?;
                remote.gateway.client_at(&admin.address.to_string())?
            }
            Err(mistakes) => {
                output::print_mistakes(&mistakes);
                return Ok(Exit::Wrong);
            }
        },
    };
    let answer = match client.ask(Method::GET, "/healthz", None, TIMEOUT) {
        Ok(answer) => answer,
        Err(error) => return Ok(report_unreachable(&client, &error)),
    };
    Ok(match read_liveness(&client, &answer) {
        Ok(liveness) => {
            let readiness = read_readiness(&client);
            match remote.format {
                Format::Json => output::print_json(&json!({"status": liveness.status, "readiness": readiness})),
                Format::Human => output::print(health_words(readiness.as_ref())),
            }?;
            Exit::Done
        }
        Err(wrong) => {
            output::print_error(&wrong);
            Exit::Wrong
        }
    })
}

/// What a healthy gateway says. Any other server may answer 200 too, so the status alone proves nothing.
fn read_liveness(
    client: &AdminClient,
    AdminResponse { status, body, .. }: &AdminResponse,
) -> Result<LivenessResponse, String> {
    let authority = client.authority();
    if *status != StatusCode::OK {
        return Err(format!("the gateway at {authority} is not healthy: it answered {}", status.as_u16()));
    }
    serde_json::from_slice(body)
        .map_err(|_| format!("the server at {authority} is not a gateway: its /healthz says something else"))
}

/// Whether a healthy gateway is ready for requests. `None`: it does not say.
fn read_readiness(client: &AdminClient) -> Option<ReadinessWord> {
    let answer = client.ask(Method::GET, "/readyz", None, TIMEOUT).ok()?;
    let readiness: ReadinessResponse = serde_json::from_slice(&answer.body).ok()?;
    Some(readiness.status)
}

fn health_words(readiness: Option<&ReadinessWord>) -> &'static str {
    match readiness {
        Some(ReadinessWord::Ready) | None => "ok",
        Some(ReadinessWord::Draining) => "alive, but not ready for requests: it finishes those it has and ends",
        Some(ReadinessWord::StoreAway) => {
            "alive, but not ready for requests: Redis does not answer, and limits deny meanwhile"
        }
    }
}
