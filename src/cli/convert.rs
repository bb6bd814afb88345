//! `portcullis convert`: a configuration that does what another program's did.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

use super::exit::Exit;
use super::output;
use crate::config::text_file;
use crate::convert::ratelimit;
use crate::convert::ratelimit::Converted;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    of: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// From the files of envoyproxy/ratelimit, Envoy's reference rate limit service
    Ratelimit(Ratelimit),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis convert ratelimit config/*.yaml > portcullis.yaml
  kubectl get configmap ratelimit -o yaml | portcullis convert ratelimit - > portcullis.yaml
  portcullis check -c portcullis.yaml && portcullis explain -c portcullis.yaml --as rls edge remote_address=198.51.100.7

The output is a whole configuration that passes `check`: a route for each domain, and a limit for each `rate_limit`, which
meets the same descriptors and decides the same calls. What cannot be carried over is said on standard error and in
comments at the beginning of the output.

Exit codes: 0 done, 1 a file could not be read or has a mistake.")]
struct Ratelimit {
    /// Files of the service, with a `domain` and its `descriptors` in each document, or `ConfigMap`s with such files; `-`
    /// reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn convert(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Program::Ratelimit(Ratelimit { files }) = &arguments.of;
    let texts = files.iter().map(|file| {
        let is_input = file.as_os_str() == text_file::STANDARD_INPUT;
        let text = if is_input { text_file::read_standard_input() } else { text_file::read_text(file) };
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        Ok((file.clone(), text))
    });
    match ratelimit::convert(texts.collect::<anyhow::Result<_>>()?) {
        Ok(Converted { yaml, differences }) => {
            output::print_mistakes(&differences);
            output::print_as_is(&yaml)?;
            Ok(Exit::Done)
        }
        Err(mistakes) => {
            output::print_mistakes(&mistakes);
            Ok(Exit::Wrong)
        }
    }
}
