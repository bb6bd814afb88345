//! Proxies that do the same job: forward with a limit that does not bind, refuse with one that does.

use std::fs;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use tempfile::TempDir;

use super::process::PROXY_CORE;
use super::process::Process;
use super::process::is_installed;
use super::process::on_core;

/// A proxy and where it counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nginx,
    Haproxy,
    Portcullis,
    /// nginx with its Lua module, which asks Redis.
    NginxLua,
    PortcullisRedis,
    /// With routes whose answers are counted, and one whose requests are.
    PortcullisOutcome,
}

impl Kind {
    /// Those that count in memory.
    pub(crate) const IN_MEMORY: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::Portcullis];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Portcullis | Self::PortcullisRedis | Self::PortcullisOutcome => "portcullis",
            Self::NginxLua => "nginx with Lua",
        }
    }

    /// What there is to install, where it is not.
    pub(crate) fn missing(self) -> Option<&'static str> {
        let (needed, is_there) = match self {
            Self::Nginx => ("nginx", is_installed("nginx")),
            Self::Haproxy => ("haproxy", is_installed("haproxy")),
            Self::Portcullis | Self::PortcullisOutcome => ("portcullis", true),
            Self::NginxLua => {
                let module = Path::new(MODULES).join("ngx_http_lua_module.so");
                ("nginx and libnginx-mod-http-lua", is_installed("nginx") && module.is_file())
            }
            Self::PortcullisRedis => ("redis-server", is_installed("redis-server")),
        };
        (!is_there).then_some(needed)
    }

    fn config(self) -> &'static str {
        match self {
            Self::Nginx => include_str!("peer/nginx.conf"),
            Self::Haproxy => include_str!("peer/haproxy.cfg"),
            Self::Portcullis => include_str!("peer/portcullis.yaml"),
            Self::NginxLua => include_str!("peer/nginx-lua.conf"),
            Self::PortcullisRedis => include_str!("peer/portcullis-redis.yaml"),
            Self::PortcullisOutcome => include_str!("peer/portcullis-outcome.yaml"),
        }
    }

    fn command(self, folder: &TempDir) -> Command {
        let path = folder.path().to_string_lossy();
        let config = format!("{path}/config");
        match self {
            Self::Nginx | Self::NginxLua => {
                let mut command = on_core(PROXY_CORE, "nginx");
                command.args(["-p", &path, "-c", &config, "-e", "/dev/null"]);
                command
            }
            Self::Haproxy => {
                let mut command = on_core(PROXY_CORE, "haproxy");
                command.args(["-db", "-q", "-f", &config]);
                command
            }
            Self::Portcullis | Self::PortcullisRedis | Self::PortcullisOutcome => {
                let mut command = on_core(PROXY_CORE, env!("CARGO_BIN_EXE_portcullis"));
                command.args(["run", "-c", &config]);
                command
            }
        }
    }
}

/// Where Debian's packages of nginx put modules.
const MODULES: &str = "/usr/lib/nginx/modules";

/// A running proxy.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    _folder: TempDir,
}

impl Peer {
    /// Starts it before an application at that address. Returns at once, before it accepts connections.
    pub(crate) fn start(kind: Kind, application: &str) -> Self {
        Self::start_with(kind, application, &[], &[])
    }

    /// The same with further words of its configuration replaced, and files beside it.
    pub(crate) fn start_with(kind: Kind, application: &str, words: &[(&str, &str)], files: &[(&str, &[u8])]) -> Self {
        let address = free_address();
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        let path = folder.path().to_string_lossy().into_owned();
        let usual =
            [("ADDRESS", &*address.to_string()), ("APPLICATION", application), ("FOLDER", &path), ("MODULES", MODULES)];
        let config = usual
            .iter()
            .chain(words)
            .fold(kind.config().to_owned(), |config, (word, meant)| config.replace(word, meant));
        for (name, content) in [("config", config.as_bytes())].iter().chain(files) {
            fs::write(folder.path().join(name), content).expect("a file in the folder");
        }
        let mut command = kind.command(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { kind, address, process: Process::start(command), _folder: folder }
    }
}

/// An address that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("bound")
}
