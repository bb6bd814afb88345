//! A real `HAProxy`, in front of the gateway or behind it.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use super::program::Program;

/// A running `haproxy`; killed when it is dropped.
#[derive(Debug)]
pub struct Haproxy(Program);

impl Haproxy {
    /// Forwards TCP to that address, or `unix@` and a path, with health checks. `options` stand in its `server` line.
    #[track_caller]
    pub fn in_front_of(address: impl Display, options: &str) -> Self {
        Self::start(&[], |front| {
            format!(
                "    mode tcp\nlisten front\n    bind {front}\n    option httpchk GET /checked\n    \
                 server gateway {address} {options}\n"
            )
        })
    }

    /// Forwards HTTP. `bind` and `server` stand behind the address in these lines. `files` are beside the
    /// configuration.
    #[track_caller]
    pub fn between(bind: &str, address: SocketAddr, server: &str, files: &[(&str, &str)]) -> Self {
        Self::start(files, |front| {
            format!(
                "    mode http\n    option forwardfor\n    http-reuse always\nlisten front\n    bind {front} {bind}\n    \
                 server behind {address} {server}\n"
            )
        })
    }

    /// `rest` is the configuration from inside its `defaults` section on.
    #[track_caller]
    fn start(files: &[(&str, &str)], rest: impl Fn(SocketAddr) -> String) -> Self {
        Self(Program::start(files, |folder, address| {
            let text = format!(
                "global\n    nbthread 1\n    maxconn 1000\n\
                 defaults\n    timeout connect 5s\n    timeout client 20s\n    timeout server 20s\n    \
                 timeout check 10s\n{}",
                rest(address)
            );
            let config = folder.join("haproxy.cfg");
            fs::write(&config, text).expect("a file in the folder");
            let mut command = Command::new("haproxy");
            command.args(["-db", "-q", "-f"]).arg(config);
            command
        }))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
