//! A server program on a free port.

use std::fs;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use super::clock::eventually;
use super::unused_address::unused_address;

/// A running program. When it is dropped, its whole process group is killed.
#[derive(Debug)]
pub struct Program {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
}

/// The file of its standard error.
const COMPLAINTS: &str = "complaints";

impl Program {
    /// Starts it in a folder with these files and waits until it accepts connections. `command` gets the folder and a
    /// free port, and is called again with another port if another process takes that one first.
    #[track_caller]
    pub fn start(files: &[(&str, &str)], command: impl Fn(&Path, SocketAddr) -> Command) -> Self {
        let mut said = Vec::new();
        for _ in 0..5 {
            let mut program = Self::spawn(files, &command);
            if program.accepts() {
                return program;
            }
            said.push(fs::read_to_string(program.folder.path().join(COMPLAINTS)).unwrap_or_default());
        }
        panic!("it started on none of five ports: tests/run installs it. It said: {said:#?}");
    }

    fn spawn(files: &[(&str, &str)], command: impl Fn(&Path, SocketAddr) -> Command) -> Self {
        let address = unused_address();
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
            .stderr(File::create(folder.path().join(COMPLAINTS)).expect("a file in the folder"))
            .process_group(0)
            .spawn()
            .expect("it is installed: tests/run does that");
        Self { child, folder, address }
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

    /// Stops its process group with SIGSTOP: the kernel still takes what is sent to it, and nothing is answered.
    pub fn pause(&self) {
        self.signal_group(Signal::STOP);
    }

    fn signal_group(&self, signal: Signal) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| rustix::process::kill_process_group(group, signal));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal_group(Signal::KILL);
        let _ = self.child.wait();
    }
}
