//! One run of the binary, in a folder of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

/// A folder in which commands are run.
pub(crate) struct Folder(TempDir);

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().expect("an empty folder"))
    }

    /// With this `portcullis.yaml` in it.
    pub(crate) fn with(config: &str) -> Self {
        let folder = Self::empty();
        folder.write("portcullis.yaml", config);
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("a file in the folder");
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `portcullis` with these arguments to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.run_in(arguments, &[])
    }

    /// The same with these variables in its environment.
    pub(crate) fn run_in(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(arguments)
            .current_dir(self.path())
            .env_remove("PORTCULLIS_ADMIN")
            .env_remove("PORTCULLIS_TOKEN")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("the binary starts");
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// An address without a listener: it was free a moment ago.
pub(crate) fn unused_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound socket")
}
