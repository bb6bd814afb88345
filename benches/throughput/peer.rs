//! A proxy that runs, with its configuration and its files.

mod lists;

use std::fs;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use tempfile::TempDir;

use super::job::{Job, Over};
use super::load;
use super::load::{Ends, Load};
use super::process::{Cores, Process};
use super::proxy::{Proxy, Setup};

/// How a proxy is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) proxy: Proxy,
    pub(crate) setup: Setup,
    /// The address of the application.
    pub(crate) application: &'a str,
    /// It has a worker on each of them.
    pub(crate) cores: Cores,
    /// Words of its configuration and what they stand for.
    pub(crate) words: &'a [(&'a str, &'a str)],
    /// Files beside its configuration.
    pub(crate) files: &'a [(&'a str, &'a [u8])],
    /// A program and its arguments that run it.
    pub(crate) under: &'a [&'a str],
}

impl<'a> Start<'a> {
    /// On the first core.
    pub(crate) const fn new(proxy: Proxy, setup: Setup, application: &'a str) -> Self {
        Self { proxy, setup, application, cores: Cores::First, words: &[], files: &[], under: &[] }
    }
}

/// A running proxy.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) proxy: Proxy,
    pub(crate) setup: Setup,
    pub(crate) address: SocketAddr,
    /// Where it speaks TLS, if its configuration says so.
    secure_address: SocketAddr,
    /// Where it answers proxies that ask, if its configuration says so.
    asked_address: SocketAddr,
    /// Where it has its dashboard, if its configuration says so.
    pub(crate) admin_address: SocketAddr,
    pub(crate) process: Process,
    folder: TempDir,
}

impl Peer {
    /// Returns at once, before it accepts connections.
    pub(crate) fn start(start: Start<'_>) -> Self {
        let Start { proxy, setup, application, cores, words, files, under } = start;
        let [address, secure_address, asked_address, admin_address] = [(); 4].map(|()| free_address());
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        let path = folder.path().to_string_lossy().into_owned();
        let usual = [
            ("ADDRESS", &*address.to_string()),
            ("SECURE", &secure_address.to_string()),
            ("ASKED", &asked_address.to_string()),
            ("ADMIN", &admin_address.to_string()),
            ("APPLICATION", application),
            ("FOLDER", &path),
            ("WORKERS", &cores.count().to_string()),
        ];
        let config =
            usual.iter().chain(words).fold(proxy.config(setup), |config, (word, meant)| config.replace(word, meant));
        fs::write(folder.path().join("config"), config).expect("a file in the folder");
        fs::write(folder.path().join(SITE_FILE), site()).expect("a file in the folder");
        if setup == Setup::Lists {
            lists::write(folder.path());
        }
        for (name, content) in files {
            fs::write(folder.path().join(name), content).expect("a file in the folder");
        }
        let program = proxy.command(&path);
        let program: Vec<&str> = under.iter().copied().chain(program.iter().map(String::as_str)).collect();
        let mut command = cores.command(&program);
        let log = File::create(folder.path().join("output")).expect("a file in the folder");
        command.stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        let process = Process::start(command);
        Self { proxy, setup, address, secure_address, asked_address, admin_address, process, folder }
    }

    /// A load of this proxy.
    pub(crate) fn load(&self, job: Job, ends: Ends, threads: usize) -> Load {
        let address = match job.over {
            Over::Tcp => self.address,
            Over::ForwardAuth | Over::Grpc(..) => self.asked_address,
            Over::Tls | Over::FreshTls | Over::Http2(_) => self.secure_address,
        };
        Load { address, site: self.folder.path().join(SITE_FILE), job, ends, threads }
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
