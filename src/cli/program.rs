//! The program: parses the command line and runs the command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use super::{check, completions, convert, demo, explain, output, remote, replay, run};
use crate::cli::manual;

/// With the commit it was built from, which the build script finds out.
const VERSION: &str = env!("PORTCULLIS_VERSION");

const AFTER_HELP: &str = "\
Begin with:
  portcullis demo                                 a sample login with a limit, on this machine
  portcullis run --upstream http://127.0.0.1:8000 --limit 'POST /login client_ip 5/minute'
                                                  the same in front of your own application

Exit codes: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.";

/// A reverse proxy and rate limiter: decides for every request whether it may pass, before the application spends
/// anything on it
#[derive(Debug, Parser)]
#[command(name = "portcullis", version = VERSION, about, long_about = None, after_help = AFTER_HELP, max_term_width = 100, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway
    Run(run::Arguments),
    /// Run a sample login application with the gateway in front of it, and print curl lines worth trying
    Demo(demo::Arguments),
    /// Check a configuration: every mistake at once, and what to write instead
    Check(check::Arguments),
    /// Print which client, lists, route, limits and keys a request would meet, and why; touches no state
    Explain(explain::Arguments),
    /// Print what a configuration would have done to the traffic in access logs, at the times of the log
    Replay(replay::Arguments),
    /// Print limits that the traffic in access logs would have lived with: a whole configuration, each limit with its
    /// reason
    Suggest(replay::SuggestArguments),
    /// List the configurations for kinds of applications, or print one of them
    Recipe(convert::RecipeArguments),
    /// Print the configuration that does what another program's did
    Convert(convert::Arguments),
    /// Print the JSON Schema of the configuration, for editors
    Schema,
    /// Ask a running gateway whether it is healthy
    Health(remote::config::HealthArguments),
    /// List the limits of a running gateway, show the state of a key, or reset it
    Limits(remote::limits::Arguments),
    /// List, add and lift the bans of a running gateway, or export them for a firewall
    Bans(remote::bans::Arguments),
    /// Tell why a request was denied, delayed, challenged or banned
    Why(remote::why::Arguments),
    /// Show who asks most: the busiest clients, or the busiest keys of a limit
    Top(remote::top::Arguments),
    /// Show what is attacked: by whom, which accounts, and the ban that would end it
    Attacks(remote::top::AttacksArguments),
    /// Print denials, bans and other events of a running gateway as they happen
    Events(remote::events::Arguments),
    /// Print how a running gateway is: its configuration, store, applications, and the other gateways
    Status(remote::status::Arguments),
    /// Print what a running gateway finds misconfigured, and what to write
    Advice(remote::status::AdviceArguments),
    /// Print the configuration that a running gateway has in force, without secrets
    Config(remote::config::ConfigArguments),
    /// Make a running gateway read its configuration anew
    Reload(remote::config::ReloadArguments),
    /// Print the completions for a shell
    Completions(completions::Arguments),
    /// Write the manual pages, one for each command
    Man(manual::ManArguments),
    /// Print this message, or the help of a command
    Help(manual::HelpArguments),
}

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    let exit = CommandLine::try_parse().map_err(anyhow::Error::from).and_then(|line| run_command(line.command));
    match exit.or_else(print_help) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                usage.exit();
            }
            output::print_error(&format!("{error:#}"));
            Exit::Wrong.into()
        }
    }
}

fn run_command(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Replay(arguments) => replay::replay(&arguments),
        Command::Suggest(arguments) => replay::suggest(&arguments),
        Command::Recipe(arguments) => convert::recipe(&arguments),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Schema => manual::schema(),
        Command::Health(arguments) => remote::config::health(&arguments),
        Command::Limits(arguments) => remote::limits::limits(&arguments),
        Command::Bans(arguments) => remote::bans::bans(&arguments),
        Command::Why(arguments) => remote::why::why(&arguments),
        Command::Top(arguments) => remote::top::top(&arguments),
        Command::Attacks(arguments) => remote::top::attacks(&arguments),
        Command::Events(arguments) => remote::events::events(&arguments),
        Command::Status(arguments) => remote::status::status(&arguments),
        Command::Advice(arguments) => remote::status::advice(&arguments),
        Command::Config(arguments) => remote::config::config(&arguments),
        Command::Reload(arguments) => remote::config::reload(&arguments),
        Command::Completions(arguments) => completions::completions(CommandLine::command(), &arguments),
        Command::Man(arguments) => manual::man(CommandLine::command(), &arguments),
        Command::Help(arguments) => manual::help(CommandLine::command(), &arguments),
    }
}

/// The parser of the command line reports help and the version as errors too, which are asked for.
fn print_help(error: anyhow::Error) -> anyhow::Result<Exit> {
    match error.downcast_ref::<clap::Error>().filter(|help| !help.use_stderr()) {
        Some(help) => output::print_as_is(&help.render().ansi().to_string()).map(|()| Exit::Done),
        None => Err(error),
    }
}

// Exit codes.

/// How a command ended. Usage errors (2) are reported as the parser of the command line does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Exit {
    Done,
    /// The input was wrong.
    Wrong,
    /// The gateway could not be reached.
    Unreachable,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Wrong => Self::from(1),
            Exit::Unreachable => Self::from(3),
        }
    }
}

// Arguments that several commands take.

pub(super) const DEFAULT_FILE: &str = "portcullis.yaml";

/// The configuration file of a command.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigFile {
    /// The configuration; `-` is standard input
    #[arg(short = 'c', long = "config", value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(super) file: PathBuf,
}

/// The output format.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For programs
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }
}
