//! `portcullis health`: asks a running gateway whether it is healthy.

use std::path::PathBuf;

use anyhow::Context;
use http::Method;
use http::StatusCode;

use super::client::AdminClient;
use super::client::TIMEOUT;
use super::gateway::DEFAULT_ADMIN;
use super::gateway::or_default;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::config;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis health
  portcullis health --admin http://10.0.0.5:9090
  portcullis health -c /etc/portcullis/portcullis.yaml

Exit codes: 0 the gateway is healthy, 1 it is not, 3 it could not be reached.")]
pub(in crate::cli) struct Arguments {
    /// The URL of the gateway's admin listener
    #[arg(long, value_name = "URL", env = "PORTCULLIS_ADMIN", default_value = DEFAULT_ADMIN)]
    admin: String,
    /// Take the address from this configuration instead
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(in crate::cli) fn health(arguments: &Arguments) -> anyhow::Result<Exit> {
    let client = match &arguments.config {
        None => AdminClient::new(or_default(&arguments.admin), None)?,
        Some(file) => match config::load(file) {
            Ok(settings) => {
                let admin = settings.admin.with_context(|| format!("{} has no `admin` section", file.display()))?;
                AdminClient::new(&admin.address.to_string(), None)?
            }
            Err(mistakes) => {
                output::print_mistakes(&mistakes);
                return Ok(Exit::Wrong);
            }
        },
    };
    let authority = client.authority();
    match client.ask(Method::GET, "/healthz", None, TIMEOUT) {
        Ok(answer) if answer.status == StatusCode::OK => {
            output::print("ok");
            Ok(Exit::Done)
        }
        Ok(answer) => {
            let status = answer.status.as_u16();
            output::print_error(&format!("the gateway at {authority} is not healthy: it answered {status}"));
            Ok(Exit::Wrong)
        }
        Err(error) => {
            output::print_error(&format!("the gateway at {authority} could not be reached: {error}"));
            Ok(Exit::Unreachable)
        }
    }
}
