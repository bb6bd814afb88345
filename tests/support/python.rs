//! The interpreter of the virtual environment that `tests/run` makes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs in this folder, with the packages of `tests/requirements.txt`.
pub fn python(folder: &Path) -> Command {
    let python: PathBuf = [env!("CARGO_MANIFEST_DIR"), "target", "application", "bin", "python"].iter().collect();
    assert!(python.exists(), "{} is missing: ./tests/run installs it", python.display());
    let mut command = Command::new(python);
    command.current_dir(folder).env("PYTHONUNBUFFERED", "1");
    command
}
