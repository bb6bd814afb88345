//! `portcullis config`: prints the configuration that a running gateway has in force.

use super::gateway::RemoteArguments;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis config
  portcullis config --format json | jq '.routes[].name'
  portcullis config | diff - portcullis.yaml

The configuration as the gateway read it, with the environment's values in place and secrets masked; YAML, or JSON with
--format json. What is left out has its default.
Exit codes: 0 done, 1 the gateway refused the request, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

pub(in crate::cli) fn config(Arguments { remote }: &Arguments) -> anyhow::Result<Exit> {
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
