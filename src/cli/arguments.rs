//! Arguments that several commands take.

use std::path::PathBuf;

use clap::ValueEnum;

/// Which configuration a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigFile {
    /// The configuration; `-` is standard input
    #[arg(short = 'c', long = "config", value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(super) file: PathBuf,
}

pub(super) const DEFAULT_FILE: &str = "portcullis.yaml";

/// For whom something is printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Human,
    /// For programs
    Json,
}
