//! Real Redis servers, on free ports, in folders of their own.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::clock::eventually;
use super::signals;
use super::unused_address::unused_address;

/// A running `redis-server`; killed when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
    options: Vec<String>,
}

impl RedisServer {
    /// A server with default settings that writes nothing to disk.
    #[track_caller]
    pub fn start() -> Self {
        Self::with_options(&[])
    }

    /// `options` are those of its command line: `["--maxmemory", "10mb"]`.
    #[track_caller]
    pub fn with_options(options: &[&str]) -> Self {
        Self::on_a_free_port(|| options.iter().map(|option| (*option).to_owned()).collect())
    }

    /// `options` is called for every port that is tried: another process may take a free port before the server does.
    #[track_caller]
    pub(super) fn on_a_free_port(options: impl Fn() -> Vec<String>) -> Self {
        for _ in 0..5 {
            let folder = tempfile::tempdir().expect("a folder for the server");
            let (address, options) = (unused_address(), options());
            let child = spawn(&folder, address, &options);
            let mut server = Self { child, folder, address, options };
            if server.answers() {
                return server;
            }
        }
        panic!("no redis-server started on any of five ports");
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Runs one command with `redis-cli` and returns its output, without the last line break.
    #[track_caller]
    pub fn cli(&self, command: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &self.address.port().to_string()])
            .args(command)
            .output()
            .expect("redis-cli is installed");
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// In bytes: what it was sent and has not read.
    pub fn unread(&self) -> u64 {
        let port = format!(":{:04X}", self.address.port());
        let sockets = fs::read_to_string("/proc/net/tcp").expect("Linux shows its sockets");
        let unread = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let is_ours = words.next()?.ends_with(&port);
            let queues = words.nth(2)?;
            u64::from_str_radix(queues.split_once(':')?.1, 16).ok().filter(|_| is_ours)
        };
        sockets.lines().filter_map(unread).sum()
    }

    /// Stops the process with SIGSTOP: the kernel still accepts connections, and nothing is answered.
    pub fn pause(&self) {
        signals::pause(self.child.id());
    }

    pub fn resume(&self) {
        signals::resume(self.child.id());
    }

    /// Kills the process. Its data is lost.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty, on the same port.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.folder, self.address, &self.options);
        assert!(self.answers(), "redis-server did not start again on {}", self.address);
    }

    /// Waits until it answers. Returns `false` if it ended.
    fn answers(&mut self) -> bool {
        let mut ended = false;
        eventually("redis-server answers", || {
            ended = self.child.try_wait().expect("a child of ours").is_some();
            ended || !self.cli(&["PING"]).is_empty()
        });
        !ended
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(folder: &TempDir, address: SocketAddr, options: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", "", "--appendonly", "no"])
        .args(options)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed: ./tests/run installs it")
}
