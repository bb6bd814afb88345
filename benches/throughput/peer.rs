//! Proxies that do the same job: forward with a limit that does not bind, refuse with one that does.

use std::fs;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;

use super::job::Job;
use super::job::Over;
use super::load;
use super::load::Load;
use super::process::Cores;
use super::process::Process;
use super::process::is_installed;

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

    fn command(self, cores: Cores, path: &str) -> Command {
        let config = format!("{path}/config");
        match self {
            Self::Nginx | Self::NginxLua => {
                let mut command = cores.command("nginx");
                command.args(["-p", path, "-c", &config, "-e", "/dev/null"]);
                command
            }
            Self::Haproxy => {
                let mut command = cores.command("haproxy");
                command.args(["-db", "-q", "-f", &config]);
                command
            }
            Self::Portcullis | Self::PortcullisRedis | Self::PortcullisOutcome => {
                let mut command = cores.command(env!("CARGO_BIN_EXE_portcullis"));
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
    /// Where it speaks TLS, if its configuration says so.
    secure_address: SocketAddr,
    pub(crate) process: Process,
    folder: TempDir,
}

impl Peer {
    /// Starts it on the first core before an application at that address. Returns at once, before it accepts
    /// connections.
    pub(crate) fn start(kind: Kind, application: &str) -> Self {
        Self::start_on(Cores::First, kind, application)
    }

    /// The same with a worker on each of these cores.
    pub(crate) fn start_on(cores: Cores, kind: Kind, application: &str) -> Self {
        Self::start_with(cores, kind, application, &[], &[])
    }

    /// The same with further words of its configuration replaced, and files beside it.
    pub(crate) fn start_with(
        cores: Cores,
        kind: Kind,
        application: &str,
        words: &[(&str, &str)],
        files: &[(&str, &[u8])],
    ) -> Self {
        let (address, secure_address) = (free_address(), free_address());
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        let path = folder.path().to_string_lossy().into_owned();
        let usual = [
            ("ADDRESS", &*address.to_string()),
            ("SECURE", &secure_address.to_string()),
            ("APPLICATION", application),
            ("FOLDER", &path),
            ("MODULES", MODULES),
            ("WORKERS", &cores.count().to_string()),
        ];
        let config = usual
            .iter()
            .chain(words)
            .fold(kind.config().to_owned(), |config, (word, meant)| config.replace(word, meant));
        let site = site();
        for (name, content) in [("config", config.as_bytes()), (SITE_FILE, site.as_bytes())].iter().chain(files) {
            fs::write(folder.path().join(name), content).expect("a file in the folder");
        }
        let mut command = kind.command(cores, &path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { kind, address, secure_address, process: Process::start(command), folder }
    }

    /// A load of this proxy.
    pub(crate) fn load(&self, job: Job, lasts: Duration, threads: usize) -> Load {
        let address = if job.over == Over::Tcp { self.address } else { self.secure_address };
        Load { address, site: self.folder.path().join(SITE_FILE), job, lasts, threads }
    }
}

/// A certificate and its key, of the kind that is fastest for a server: ECDSA over P-256.
fn site() -> String {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([load::SITE.to_owned()]).expect("a name");
    format!("{}{}", cert.pem(), signing_key.serialize_pem())
}

const SITE_FILE: &str = "site.pem";

/// An address that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("bound")
}
