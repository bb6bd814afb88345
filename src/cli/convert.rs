//! `portcullis recipe` and `portcullis convert`: whole configurations, for kinds of applications, and one that does what another
//! program's did.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;

use super::output;
use crate::cli::output::Table;
use crate::cli::program::{Exit, Format};
use crate::config::inline::Flags;
use crate::config::source;
use crate::convert::Converted;
use crate::words::recipes::{PathPrefix, RECIPES, Recipe};
use crate::{config, convert};

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
        let is_input = file.as_os_str() == source::STANDARD_INPUT;
        let text = if is_input { source::read_standard_input() } else { source::read_text(file) };
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        Ok((file.clone(), text))
    });
    match convert::convert(texts.collect::<anyhow::Result<_>>()?) {
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

// `portcullis recipe`: the configurations for kinds of applications.

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis recipe
  portcullis recipe wordpress > portcullis.yaml && portcullis check
  portcullis recipe wordpress --upstream http://10.0.1.5:8000 --prefix /blog > portcullis.yaml
  portcullis recipe --format json | jq -r '.[].name'

A recipe is a whole configuration: listen and upstream, the routes of the application, and limits for each with a reason.
--prefix moves every path of it, also the places that a login redirects to. Without a name the recipes are listed.")]
pub(super) struct RecipeArguments {
    /// The recipe; left out: the recipes are listed
    #[arg(value_name = "NAME", value_parser = names())]
    name: Option<String>,
    /// The application that the gateway stands in front of; left out: `http://127.0.0.1:8000`
    #[arg(long, value_name = "URL", requires = "name")]
    upstream: Option<String>,
    /// The path that the application stands below, such as `/blog`
    #[arg(long, value_name = "PATH", requires = "name", default_value = "/", hide_default_value = true)]
    prefix: PathPrefix,
    /// The output format of the list
    #[arg(long, value_enum, default_value_t = Format::Human, conflicts_with = "name")]
    format: Format,
}

/// Shells complete them, and one that is nearly right is suggested.
fn names() -> PossibleValuesParser {
    RECIPES.iter().map(|recipe| PossibleValue::new(recipe.name)).collect::<Vec<_>>().into()
}

pub(super) fn recipe(arguments: &RecipeArguments) -> anyhow::Result<Exit> {
    let Some(recipe) = arguments.name.as_deref().and_then(Recipe::named) else { return list(arguments.format) };
    if let Some(upstream) = &arguments.upstream {
        let flags = Flags { upstream: upstream.clone(), listen: None, admin: None, limits: Vec::new() };
        if let Err(mistakes) = config::inline(&flags) {
            output::print_mistakes(&mistakes);
            return Ok(Exit::Wrong);
        }
    }
    output::print_as_is(&recipe.file(arguments.upstream.as_deref(), &arguments.prefix))?;
    Ok(Exit::Done)
}

/// A recipe in the list.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    r#for: &'static str,
}

fn list(format: Format) -> anyhow::Result<Exit> {
    match format {
        Format::Human => {
            let mut table = Table::new(["NAME", "FOR"]);
            for Recipe { name, purpose, .. } in &RECIPES {
                table.row([(*name).to_owned(), (*purpose).to_owned()]);
            }
            output::print(&table.to_string())?;
        }
        Format::Json => {
            let listed = RECIPES.iter().map(|recipe| Listed { name: recipe.name, r#for: recipe.purpose });
            output::print_json(&listed.collect::<Vec<_>>())?;
        }
    }
    Ok(Exit::Done)
}
