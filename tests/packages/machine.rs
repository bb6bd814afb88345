//! A machine to install packages on: a container that runs systemd.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::stand_ins::StandIns;
use crate::support::{docker, eventually};

/// A running Debian; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Machine {
    name: String,
    _images: StandIns,
}

impl Machine {
    #[track_caller]
    pub(crate) fn boot() -> Self {
        let images = StandIns::make("machine");
        let name = format!("portcullis-test-machine-{}", std::process::id());
        let mut arguments = vec!["run", "--detach", "--name", &name];
        // systemd makes groups of processes, and services that see a part of the machine alone.
        // A look at the program of a process takes the right to trace it.
        arguments.extend([
            "--cap-add",
            "SYS_ADMIN",
            "--cap-add",
            "SYS_PTRACE",
            "--cgroupns",
            "host",
            "--volume",
            "/sys/fs/cgroup:/sys/fs/cgroup:rw",
        ]);
        arguments.extend(["--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"]);
        arguments.extend(["--tmpfs", "/run", "--tmpfs", "/run/lock", "--tmpfs", "/tmp", "portcullis-test-machine"]);
        docker(&arguments);
        let machine = Self { name, _images: images };
        eventually("systemd has started", || machine.run("systemctl is-system-running").status.success());
        machine
    }

    /// Copies a file of this machine there.
    #[track_caller]
    pub(crate) fn copy(&self, file: &Path, to: &str) {
        docker(&["cp", file.to_str().expect("text"), &format!("{}:{to}", self.name)]);
    }

    /// Runs lines for a shell to their end.
    pub(crate) fn run(&self, lines: &str) -> Output {
        Command::new("docker").args(["exec", &self.name, "sh", "-c", lines]).output().expect("docker is installed")
    }

    /// The same for lines that are to succeed; returns what they printed, errors included.
    #[track_caller]
    pub(crate) fn succeed(&self, lines: &str) -> String {
        let output = self.run(&format!("exec 2>&1; {lines}"));
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{lines}: {said}");
        said
    }

    /// Starts lines for a shell that go on.
    #[track_caller]
    pub(crate) fn spawn(&self, lines: &str) {
        docker(&["exec", "--detach", &self.name, "sh", "-c", lines]);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", &self.name]).stdout(Stdio::null()).status();
    }
}
