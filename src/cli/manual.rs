//! `portcullis help`: the same as `--help`. It is a command like any other, so that it has a help text of its own.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap::error::ErrorKind;

use crate::cli::output;
use crate::cli::program::Exit;
use crate::config;

#[derive(Debug, clap::Args)]
pub(super) struct HelpArguments {
    /// The command, and its subcommand
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn help(mut program: Command, arguments: &HelpArguments) -> anyhow::Result<Exit> {
    program.build();
    let mut command = &mut program;
    for name in &arguments.command {
        if command.find_subcommand(name).is_none() {
            command.error(ErrorKind::InvalidSubcommand, format!("there is no command `{name}`")).exit();
        }
        command = command.find_subcommand_mut(name).expect("it was found");
    }
    output::print_as_is(&command.render_long_help().ansi().to_string())?;
    Ok(Exit::Done)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  portcullis man /usr/local/share/man/man1 && man portcullis-run")]
pub(super) struct ManArguments {
    /// The directory for `portcullis.1`, `portcullis-run.1` and so on; it is created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

// `portcullis man`: the manual pages, from the same definition as the help.

pub(super) fn man(program: Command, arguments: &ManArguments) -> anyhow::Result<Exit> {
    let directory = &arguments.directory;
    let failed = || format!("cannot write manual pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(program, directory).with_context(failed)?;
    Ok(Exit::Done)
}

// `portcullis schema`: the JSON Schema of the configuration.

pub(super) fn schema() -> anyhow::Result<Exit> {
    output::print_json(&config::schema())?;
    Ok(Exit::Done)
}
