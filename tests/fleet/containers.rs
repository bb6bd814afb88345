//! Containers on a private network. Each has its own address and sees this machine's `/usr`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{docker, succeed};

/// A private network and the image of its containers; both are removed when it is dropped.
#[derive(Debug)]
pub(super) struct Network {
    name: String,
    /// The address of this machine on it.
    pub(super) host: Ipv4Addr,
}

/// A running container; removed when it is dropped.
#[derive(Debug)]
pub(super) struct Container {
    name: String,
    pub(super) address: Ipv4Addr,
}

/// The folders of a root file system whose programs all live in `/usr`.
const SKELETON: &str = "mkdir -p usr etc tmp proc sys dev run var && ln -s usr/bin usr/sbin usr/lib usr/lib64 .";

impl Network {
    #[track_caller]
    pub(super) fn new() -> Self {
        let name = format!("portcullis-fleet-{}", std::process::id());
        let root = tempfile::tempdir().expect("a folder for the image");
        let import = format!("{SKELETON} && tar -c . | docker import - {name}");
        succeed(Command::new("sh").args(["-c", &import]).current_dir(root.path()));
        docker(&["network", "create", &name]);
        let host = docker(&["network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", &name]);
        Self { host: host.parse().expect("an address"), name }
    }

    /// Starts a program, with folders of this machine to read, and a port that is published on the loopback.
    #[track_caller]
    pub(super) fn start(&self, name: &str, folders: &[(&Path, &str)], port: u16, program: &[&str]) -> Container {
        let name = format!("{}-{name}", self.name);
        let port = format!("127.0.0.1::{port}");
        // What cuts and slows its links is run inside of it.
        let mut arguments: Vec<String> =
            ["run", "--detach", "--cap-add", "NET_ADMIN", "--volume", "/usr:/usr:ro", "--publish", &port]
                .map(str::to_owned)
                .to_vec();
        arguments.extend(["--network", &self.name, "--name", &name].map(str::to_owned));
        for (folder, place) in folders {
            arguments.extend(["--volume".to_owned(), format!("{}:{place}:ro", folder.display())]);
        }
        arguments.push(self.name.clone());
        arguments.extend(program.iter().map(|&word| word.to_owned()));
        docker(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let address = docker(&["inspect", "--format", address, &name]).parse().expect("an address");
        Container { name, address }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["network", "rm", &self.name]).stdout(Stdio::null()).status();
        let _ = Command::new("docker").args(["rmi", &self.name]).stdout(Stdio::null()).status();
    }
}

impl Container {
    /// Where on the loopback a port of it is published.
    #[track_caller]
    pub(super) fn published(&self, port: u16) -> SocketAddr {
        docker(&["port", &self.name, &port.to_string()]).parse().expect("one address")
    }

    /// Runs a program inside of it and answers what it printed.
    #[track_caller]
    pub(super) fn exec(&self, program: &[&str]) -> String {
        docker(&[&["exec", &self.name], program].concat())
    }

    /// Stops its program with SIGSTOP, until it is resumed. (`docker pause` needs the kernel's freezer, which gives up on a
    /// machine that is busy.)
    pub(super) fn pause(&self) {
        docker(&["kill", "--signal", "STOP", &self.name]);
    }

    pub(super) fn resume(&self) {
        docker(&["kill", "--signal", "CONT", &self.name]);
    }

    /// What its program has written to standard error so far.
    #[track_caller]
    pub(super) fn log(&self) -> String {
        let logs = format!("docker logs {} 2>&1 >/dev/null", self.name);
        succeed(Command::new("sh").args(["-c", &logs]))
    }

    /// Starts a program inside, in the background.
    #[track_caller]
    pub(super) fn spawn(&self, program: &[&str]) {
        docker(&[&["exec", "--detach", &self.name], program].concat());
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", &self.name]).stdout(Stdio::null()).status();
    }
}
