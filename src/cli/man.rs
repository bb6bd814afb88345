//! `portcullis man`: the manual pages, from the same definition as the help.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;

use super::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  portcullis man /usr/local/share/man/man1 && man portcullis-run")]
pub(super) struct Arguments {
    /// The directory for `portcullis.1`, `portcullis-run.1` and so on; it is created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn man(program: Command, arguments: &Arguments) -> anyhow::Result<Exit> {
    let directory = &arguments.directory;
    let failed = || format!("cannot write manual pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(program, directory).with_context(failed)?;
    Ok(Exit::Done)
}
