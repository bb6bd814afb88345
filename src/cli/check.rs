//! `portcullis check`: prints every mistake of a configuration at once, or its warnings.

use super::output;
use crate::cli::program::{ConfigFile, Exit, Format};
use crate::config::{Diagnostic, Settings, Severity};
use crate::words::units::counted;
use crate::{app, config};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis check -c config/login.yaml
  portcullis check --deny-warnings && systemctl reload portcullis
  portcullis check --format json | jq -r '.[] | \"\\(.file):\\(.line): \\(.severity): \\(.message)\"'

With --format json: a list of {file, line, column, severity, message, help}, empty when nothing is wrong; severity is
error or warning.
Files that the gateway would write are not opened: whether they can be is told by what the user of this command may do.
A configuration with warnings is used as it is, and the same warnings are logged at the start, and on the reload that brings them.")]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Exit 1 for warnings too
    #[arg(long)]
    deny_warnings: bool,
}

pub(super) fn check(arguments: &Arguments) -> anyhow::Result<Exit> {
    let file = &arguments.config.file;
    let (diagnostics, settings) = match config::load(file) {
        Ok(settings) => (found(&settings), Some(settings)),
        Err(mistakes) => (mistakes, None),
    };
    let is_wrong = |found: &Diagnostic| found.severity == Severity::Error || arguments.deny_warnings;
    let is_good = settings.is_some() && !diagnostics.iter().any(is_wrong);
    match arguments.format {
        Format::Human => {
            output::print_report(&diagnostics)?;
            if let Some(settings) = settings.filter(|_| is_good) {
                output::print(&format!("{}: ok ({})", file.display(), summary(&settings)))?;
            }
        }
        Format::Json => output::print_json(&diagnostics)?,
    }
    Ok(if is_good { Exit::Done } else { Exit::Wrong })
}

/// The warnings of a configuration without mistakes, and what a start would find wrong with the files that it writes.
fn found(settings: &Settings) -> Vec<Diagnostic> {
    let mut found = [settings.warnings.clone(), app::check_outputs(settings)].concat();
    found.sort();
    found
}

/// `2 routes, 3 limits, 1 upstream`
fn summary(settings: &Settings) -> String {
    let counts = [
        (settings.policy.routes.all().len(), "route"),
        (settings.policy.limits.len(), "limit"),
        (settings.policy.lists.len(), "list"),
        (settings.upstreams.len(), "upstream"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let words = counts.map(|(count, noun)| counted(*count, noun));
    words.collect::<Vec<_>>().join(", ")
}
