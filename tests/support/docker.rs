//! The Docker engine.

use std::process::Command;

/// Runs `docker` with these arguments and returns what it printed.
#[track_caller]
pub fn docker(arguments: &[&str]) -> String {
    succeed(Command::new("docker").args(arguments))
}

/// Runs a command, fails the test if the command fails, and returns what it printed.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: is the Docker engine running? {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
