//! Base images made on this machine, because the tests reach no registry; see the script `stand-ins`.

use std::process::{Command, Stdio};

use crate::support::succeed;

/// Images that were made for a test; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct StandIns(Vec<String>);

impl StandIns {
    /// `machine` or `image`.
    #[track_caller]
    pub(crate) fn make(kind: &str) -> Self {
        let made = succeed(engine(&mut Command::new("tests/packages/stand-ins")).arg(kind));
        Self(made.lines().map(str::to_owned).collect())
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        for image in self.0.iter().rev() {
            let _ = Command::new("docker").args(["rmi", image]).stdout(Stdio::null()).status();
        }
    }
}

/// Has a command build images with `BuildKit`, which the Dockerfile's cache mounts need. Debian's client has it built in;
/// another one that comes first in the path may lack it.
pub(crate) fn engine(command: &mut Command) -> &mut Command {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("/usr/bin:{path}")).env("DOCKER_BUILDKIT", "1")
}
