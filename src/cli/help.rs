//! `portcullis help`: the same as `--help`. It is a command like any other, so that it has a help text of its own.

use clap::Command;
use clap::error::ErrorKind;

use super::exit::Exit;
use super::output;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The command, and its subcommand
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn help(mut program: Command, arguments: &Arguments) -> anyhow::Result<Exit> {
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
