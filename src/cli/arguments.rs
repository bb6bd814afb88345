//! Arguments that several commands take.

use std::path::PathBuf;

use clap::ValueEnum;

/// The configuration file of a command.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigFile {
    /// The configuration; `-` is standard input
    #[arg(short = 'c', long = "config", value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(super) file: PathBuf,
}

pub(super) const DEFAULT_FILE: &str = "portcullis.yaml";

/// The output format.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For programs
    Json,
}
