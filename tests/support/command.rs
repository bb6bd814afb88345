//! Runs of the binary to its end: in a folder of its own, or against a running gateway.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::gateway::{Gateway, binary};

/// A folder in which commands are run.
#[derive(Debug)]
pub struct Folder(TempDir);

/// How a command ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn empty() -> Self {
        Self(tempfile::tempdir().expect("an empty folder"))
    }

    /// With this `portcullis.yaml` in it.
    pub fn with(config: &str) -> Self {
        let folder = Self::empty();
        folder.write("portcullis.yaml", config);
        folder
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("a file in the folder");
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `portcullis` with these arguments to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_in(arguments, &[])
    }

    /// The same with these variables in its environment.
    pub fn run_in(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        Ended::of(self.command(arguments).envs(variables.iter().copied()))
    }

    /// The same with this as its standard output.
    pub fn run_onto(&self, arguments: &[&str], stdout: impl Into<Stdio>) -> Ended {
        Ended::of(self.command(arguments).stdout(stdout))
    }

    /// Runs `portcullis` with these variables in its environment, and with this text as its standard input.
    pub fn run_with_input(&self, arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Ended {
        self.write("input", input);
        let input = File::open(self.path().join("input")).expect("it was written");
        Ended::reading(self.command(arguments).envs(variables.iter().copied()), input)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(self.path());
        command.env_remove("PORTCULLIS_ADMIN").env_remove("PORTCULLIS_TOKEN");
        command
    }
}

impl Ended {
    fn of(command: &mut Command) -> Self {
        Self::reading(command, Stdio::null())
    }

    fn reading(command: &mut Command, input: impl Into<Stdio>) -> Self {
        let output = command.stdin(input).output().expect("the binary starts");
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Gateway {
    /// With the admin token `s3cret`, in the file `token`.
    #[track_caller]
    pub fn with_token(config: impl AsRef<str>) -> Self {
        Self::with_files(config, &[("token", &format!("{TOKEN}\n"))])
    }

    /// Runs a command that talks to this gateway.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with_input(arguments, "")
    }

    /// The same with this text as its standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let admin = format!("http://{}", self.admin());
        let arguments = [arguments, &["--admin", &admin]].concat();
        Folder::empty().run_with_input(&arguments, &[("PORTCULLIS_TOKEN", TOKEN)], input)
    }
}

impl Ended {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

const TOKEN: &str = "s3cret";
