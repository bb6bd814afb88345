//! A real nginx, in front of the gateway or behind it.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use super::program::Program;

/// A running `nginx`; killed when it is dropped.
#[derive(Debug)]
pub struct Nginx(Program);

impl Nginx {
    /// `http` is the content of the `http` block, in which `LISTEN` stands for the address. `files` are beside the
    /// configuration.
    #[track_caller]
    pub fn start(http: &str, files: &[(&str, &str)]) -> Self {
        Self(Program::start(files, |folder, address| {
            let http = http.replace("LISTEN", &address.to_string());
            let text = format!(
                "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\nevents {{ worker_connections 512; }}\n\
                 http {{\naccess_log off;\nclient_max_body_size 0;\nclient_body_temp_path body;\nproxy_temp_path proxy;\n\
                 fastcgi_temp_path fastcgi;\nuwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n{http}\n}}\n"
            );
            fs::write(folder.join("nginx.conf"), text).expect("a file in the folder");
            let mut command = Command::new("nginx");
            command.args(["-e", "error.log", "-c", "nginx.conf", "-p"]).arg(folder);
            command
        }))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
