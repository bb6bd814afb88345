//! A server program on a free port.

use std::fs;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use rustix::process::Pid;
use rustix::process::Signal;
use tempfile::TempDir;

use super::clock::eventually;

/// A running program. When it is dropped, its whole process group is killed.
#[derive(Debug)]
pub struct Program {
    child: Child,
    _folder: TempDir,
    address: SocketAddr,
}

impl Program {
    /// Starts it in a folder with these files and waits until it accepts connections. `command` gets the folder and a
    /// free port, and is called again with another port if another process takes that one first.
    #[track_caller]
    pub fn start(files: &[(&str, &str)], command: impl Fn(&Path, SocketAddr) -> Command) -> Self {
        for _ in 0..5 {
            let mut program = Self::spawn(files, &command);
            if program.accepts() {
                return program;
            }
        }
        panic!("it started on none of five ports: tests/run installs it");
    }

    fn spawn(files: &[(&str, &str)], command: impl Fn(&Path, SocketAddr) -> Command) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("a bound socket");
        drop(free);
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder in the folder");
            fs::write(path, text).expect("a file in the folder");
        }
        let child = command(folder.path(), address)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it is installed: tests/run does that");
        Self { child, _folder: folder, address }
    }

    /// Whether it listens. If not, another process has taken the port.
    fn accepts(&mut self) -> bool {
        let mut is_there = false;
        eventually("it listens, or ends", || {
            is_there = TcpStream::connect(self.address).is_ok();
            is_there || self.child.try_wait().expect("a child of ours").is_some()
        });
        is_there && self.child.try_wait().expect("a child of ours").is_none()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| rustix::process::kill_process_group(group, Signal::KILL));
        let _ = self.child.wait();
    }
}
