//! A real `HAProxy` in front of the gateway.

use std::fs;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use tempfile::TempDir;

use super::clock::eventually;

/// A running `haproxy`; killed when it is dropped.
#[derive(Debug)]
pub struct Haproxy {
    child: Child,
    _folder: TempDir,
    address: SocketAddr,
}

impl Haproxy {
    /// Passes on bytes to that address, which it checks with requests of its own; `options` are those of its `server`
    /// line.
    #[track_caller]
    pub fn in_front_of(address: SocketAddr, options: &str) -> Self {
        for _ in 0..5 {
            let mut haproxy = Self::spawn(address, options);
            if haproxy.accepts() {
                return haproxy;
            }
        }
        panic!("no haproxy started on any of five ports");
    }

    fn spawn(gateway: SocketAddr, options: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("a bound socket");
        drop(free);
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        let config = folder.path().join("haproxy.cfg");
        let text = format!(
            "global\n    nbthread 1\n    maxconn 1000\n\
             defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 20s\n    timeout server 20s\n\
             listen front\n    bind {address}\n    option httpchk GET /checked\n    server gateway {gateway} {options}\n"
        );
        fs::write(&config, text).expect("a file in the folder");
        let child = Command::new("haproxy")
            .args(["-db", "-q", "-f"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("haproxy is installed: tests/run does that");
        Self { child, _folder: folder, address }
    }

    /// Whether it listens; if not, someone else has taken the port.
    fn accepts(&mut self) -> bool {
        let mut is_there = false;
        eventually("haproxy listens, or ends", || {
            is_there = TcpStream::connect(self.address).is_ok();
            is_there || self.child.try_wait().expect("a child of ours").is_some()
        });
        is_there && self.child.try_wait().expect("a child of ours").is_none()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
