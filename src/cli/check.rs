//! `portcullis check`: every mistake of a configuration at once.

use super::ConfigFile;
use super::Exit;
use super::Format;
use super::output;
use crate::config;
use crate::config::Diagnostic;
use crate::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis check -c config/login.yaml
  portcullis check --format json | jq -r '.[] | \"\\(.file):\\(.line): \\(.message)\"'

With --format json: a list of {file, line, column, message, help}, empty when all is well.")]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// For whom to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) fn check(arguments: &Arguments) -> Exit {
    let file = &arguments.config.file;
    match (config::load(file), arguments.format) {
        (Ok(settings), Format::Human) => {
            for Diagnostic { file, line, column, message, .. } in &settings.warnings {
                output::complain(&format!("warning: {}:{line}:{column}: {message}", file.display()));
            }
            output::say(&format!("{}: ok ({})", file.display(), summary(&settings)));
        }
        (Ok(_), Format::Json) => output::say_json(&Vec::<Diagnostic>::new()),
        (Err(mistakes), format) => {
            match format {
                Format::Human => output::report(&mistakes),
                Format::Json => output::say_json(&mistakes),
            }
            return Exit::Wrong;
        }
    }
    Exit::Done
}

/// `2 routes, 3 limits, 1 upstream`
fn summary(settings: &Settings) -> String {
    let counts = [
        (settings.policy.routes.routes.len(), "route"),
        (settings.policy.limits.len(), "limit"),
        (settings.policy.lists.len(), "list"),
        (settings.upstreams.len(), "upstream"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let words = counts.map(|(count, noun)| format!("{count} {noun}{}", if *count == 1 { "" } else { "s" }));
    words.collect::<Vec<_>>().join(", ")
}
