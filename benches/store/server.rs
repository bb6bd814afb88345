//! A redis-server for the bench, on a free port, that ends with it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with_options(&[])
    }

    /// `options` are those of its command line.
    pub(crate) fn with_options(options: &[&str]) -> Self {
        let (folder, address) = (tempfile::tempdir().expect("a folder for the server"), unused_address());
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(folder.path())
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        while TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        Self { child, address, _folder: folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    pub(crate) fn flush(&self) {
        self.ask("FLUSHALL");
    }

    /// A number from `INFO`.
    pub(crate) fn info(&self, name: &str) -> f64 {
        let info = self.ask("INFO");
        let number = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        number.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {info}"))
    }

    /// Sends a command, its words apart, and returns its answer.
    pub(crate) fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the server answers");
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine that nobody uses.
pub(crate) fn unused_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}
