//! Three proxies that do the same job: forward with a limit that does not bind, refuse with one that does.

use std::fs;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::process::Command;
use std::process::Stdio;

use tempfile::TempDir;

use super::process::PROXY_CORE;
use super::process::Process;
use super::process::is_installed;
use super::process::on_core;

/// A proxy by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nginx,
    Haproxy,
    Portcullis,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::Portcullis];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Portcullis => "portcullis",
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        self == Self::Portcullis || is_installed(self.name())
    }

    fn config(self, address: SocketAddr, application: &str) -> String {
        let template = match self {
            Self::Nginx => NGINX,
            Self::Haproxy => HAPROXY,
            Self::Portcullis => PORTCULLIS,
        };
        template.replace("ADDRESS", &address.to_string()).replace("APPLICATION", application)
    }

    fn command(self, folder: &TempDir) -> Command {
        let path = folder.path().to_string_lossy();
        let config = format!("{path}/config");
        match self {
            Self::Nginx => {
                let mut command = on_core(PROXY_CORE, "nginx");
                command.args(["-p", &path, "-c", &config, "-e", "/dev/null"]);
                command
            }
            Self::Haproxy => {
                let mut command = on_core(PROXY_CORE, "haproxy");
                command.args(["-db", "-q", "-f", &config]);
                command
            }
            Self::Portcullis => {
                let mut command = on_core(PROXY_CORE, env!("CARGO_BIN_EXE_portcullis"));
                command.args(["run", "-c", &config]);
                command
            }
        }
    }
}

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
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        fs::write(folder.path().join("config"), kind.config(address, application)).expect("a file in the folder");
        let mut command = kind.command(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { kind, address, process: Process::start(command), _folder: folder }
    }
}

/// Both set the forwarding headers and a request id that portcullis sets too, and log nothing about requests.
const NGINX: &str = "
daemon off;
worker_processes 1;
pid nginx.pid;
error_log /dev/null crit;
events { worker_connections 15000; }
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    limit_req_status 429;
    limit_req_zone $binary_remote_addr zone=wide:10m rate=1000000r/s;
    limit_req_zone $binary_remote_addr zone=narrow:10m rate=1r/m;
    upstream application { server APPLICATION; keepalive 128; keepalive_requests 1000000000; keepalive_timeout 600s; }
    proxy_http_version 1.1;
    proxy_set_header Connection '';
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Request-Id $request_id;
    server {
        listen ADDRESS backlog=4096;
        location / { limit_req zone=wide burst=1000000 nodelay; proxy_pass http://application; }
        location /refused { limit_req zone=narrow; proxy_pass http://application; }
    }
}
";

const HAPROXY: &str = "
global
    nbthread 1
    no strict-limits
    maxconn 15000
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    timeout http-keep-alive 600s
    option http-keep-alive
    http-reuse always
frontend front
    bind ADDRESS backlog 4096
    option forwardfor
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    http-request set-header X-Real-IP %[src]
    unique-id-format %{+X}o\\ %ci:%cp_%Ts_%rt
    unique-id-header X-Request-Id
    http-request track-sc0 src table wide
    http-request deny deny_status 429 if { sc_http_req_rate(0,wide) gt 1000000 }
    http-request track-sc1 src table narrow if { path /refused }
    http-request deny deny_status 429 if { path /refused } { sc_http_req_rate(1,narrow) gt 1 }
    default_backend application
backend wide
    stick-table type ip size 100k expire 1m store http_req_rate(1s)
backend narrow
    stick-table type ip size 100k expire 60m store http_req_rate(60m)
backend application
    server application APPLICATION
";

const PORTCULLIS: &str = "
listen: ADDRESS
upstream: http://APPLICATION
log: {level: warn, requests: false}
headers: off
server: {timeouts: {keepalive: 600s}}
limits:
  - {name: wide, key: client_ip, rate: 100000/second}
routes:
  - match: /refused
    limits:
      - {name: narrow, key: client_ip, rate: 1/hour}
";
