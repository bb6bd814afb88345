//! `portcullis health`: asks a running gateway whether it is healthy.

use std::path::PathBuf;

use anyhow::Context;
use http::Method;
use http::StatusCode;
use serde_json::Value;

use super::client::AdminClient;
use super::client::AdminResponse;
use super::client::TIMEOUT;
use super::gateway::RemoteArguments;
use super::gateway::report_unreachable;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::config;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis health
  portcullis health --admin http://10.0.0.5:9090
  portcullis health -c /etc/portcullis/portcullis.yaml

It needs no token.
Exit codes: 0 the gateway is healthy, 1 it is not, 3 it could not be reached.")]
pub(in crate::cli) struct Arguments {
    /// Take the address from this configuration instead
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
}

pub(in crate::cli) fn health(Arguments { config, remote }: &Arguments) -> anyhow::Result<Exit> {
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
    Ok(match read(&client, &answer) {
        Ok(liveness) => {
            match remote.format {
                Format::Json => output::print_json(&liveness),
                Format::Human => output::print("ok"),
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
fn read(client: &AdminClient, AdminResponse { status, body, .. }: &AdminResponse) -> Result<Value, String> {
    let authority = client.authority();
    if *status != StatusCode::OK {
        return Err(format!("the gateway at {authority} is not healthy: it answered {}", status.as_u16()));
    }
    let liveness = serde_json::from_slice(body).ok().filter(|answer: &Value| answer["status"] == "ok");
    liveness.ok_or_else(|| format!("the server at {authority} is not a gateway: its /healthz says something else"))
}
