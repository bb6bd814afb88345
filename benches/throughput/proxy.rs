//! The programs to measure, and what each of them is to do.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::process::is_installed;

/// A program to measure: a column of the tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Proxy {
    pub(crate) name: &'static str,
    software: Software,
    program: &'static str,
}

/// Whose configuration files it reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Software {
    Nginx,
    Haproxy,
    Portcullis,
}

/// What proxies are to do.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Setup {
    /// To forward with no limit or with one in memory, or to refuse.
    Limits,
    /// The same with an access log.
    Logged,
    /// To look into two lists and to count for four limits.
    Lists,
    /// To count by a field of the body.
    Form,
    /// To count by a cookie.
    Cookie,
    /// To count by the account that is signed in with that cookie.
    User,
    /// To count in Redis; nginx with its Lua module.
    Redis,
    /// To count answers.
    Outcome,
    /// To decide for itself and for proxies that ask.
    Fronts,
    /// To refuse or forward while pages of the dashboard are open.
    Watched,
}

impl Proxy {
    pub(crate) const NGINX: Self = Self { name: "nginx", software: Software::Nginx, program: "nginx" };
    /// Without the fields that tell the application who its client is, which the others set.
    pub(crate) const NGINX_ALONE: Self = Self { name: "nginx, no fields", ..Self::NGINX };
    pub(crate) const HAPROXY: Self = Self { name: "haproxy", software: Software::Haproxy, program: "haproxy" };
    /// What cargo has built for this bench.
    pub(crate) const PORTCULLIS: Self = Self::binary("portcullis", env!("CARGO_BIN_EXE_portcullis"));

    /// Another build of portcullis.
    pub(crate) const fn binary(name: &'static str, program: &'static str) -> Self {
        Self { name, software: Software::Portcullis, program }
    }

    /// Whether others are compared to it.
    pub(crate) fn is_reference(self) -> bool {
        self.software != Software::Portcullis
    }

    /// What there is to install before it can do this, where it is not.
    pub(crate) fn missing(self, setup: Setup) -> Option<&'static str> {
        let (needed, is_there) = match (self.software, setup) {
            (Software::Nginx, Setup::Redis) => {
                let module = Path::new(MODULES).join("ngx_http_lua_module.so");
                ("nginx and libnginx-mod-http-lua", is_installed(self.program) && module.is_file())
            }
            (Software::Portcullis, Setup::Redis) => ("redis-server", is_installed("redis-server")),
            (Software::Portcullis, _) => ("such a file", Path::new(self.program).is_file()),
            _ => (self.name, is_installed(self.program)),
        };
        (!is_there).then_some(needed)
    }

    /// Its configuration, with words that stand for what differs from start to start.
    pub(super) fn config(self, setup: Setup) -> String {
        let (base, rules) = match (self.software, setup) {
            (Software::Nginx, Setup::Limits | Setup::Logged) => (NGINX, include_str!("peer/limits/nginx.conf")),
            (Software::Nginx, Setup::Lists) => (NGINX, include_str!("peer/lists/nginx.conf")),
            (Software::Nginx, Setup::Form) => (NGINX, include_str!("peer/form/nginx.conf")),
            (Software::Nginx, Setup::Redis) => (include_str!("peer/redis/nginx.conf"), ""),
            (Software::Haproxy, Setup::Limits | Setup::Logged) => (HAPROXY, include_str!("peer/limits/haproxy.cfg")),
            (Software::Haproxy, Setup::Lists) => (HAPROXY, include_str!("peer/lists/haproxy.cfg")),
            (Software::Haproxy, Setup::Form) => (HAPROXY, include_str!("peer/form/haproxy.cfg")),
            (Software::Portcullis, Setup::Limits | Setup::Logged) => {
                (PORTCULLIS, include_str!("peer/limits/portcullis.yaml"))
            }
            (Software::Portcullis, Setup::Lists) => (PORTCULLIS, include_str!("peer/lists/portcullis.yaml")),
            (Software::Portcullis, Setup::Form) => (PORTCULLIS, include_str!("peer/form/portcullis.yaml")),
            (Software::Portcullis, Setup::Cookie) => (PORTCULLIS, include_str!("peer/cookie/portcullis.yaml")),
            (Software::Portcullis, Setup::User) => (PORTCULLIS, include_str!("peer/user/portcullis.yaml")),
            (Software::Portcullis, Setup::Redis) => (PORTCULLIS, include_str!("peer/redis/portcullis.yaml")),
            (Software::Portcullis, Setup::Outcome) => (PORTCULLIS, include_str!("peer/outcome/portcullis.yaml")),
            (Software::Portcullis, Setup::Fronts) => (include_str!("peer/fronts/portcullis.yaml"), ""),
            (Software::Portcullis, Setup::Watched) => (include_str!("peer/watched/portcullis.yaml"), ""),
            (Software::Nginx | Software::Haproxy, _) => unreachable!("{} is not asked to do this", self.name),
        };
        let forwarding = if self == Self::NGINX_ALONE { "" } else { include_str!("peer/forwarding.conf") };
        let base = base.replace("FORWARDING", forwarding).replace("RULES", rules);
        base.replace("MODULES", MODULES).replace("ACCESS_LOG", self.access_log(setup))
    }

    /// How it is told to write an access log, or none. HAProxy and portcullis write theirs to standard output. All of
    /// them write the lines of many requests at once where they can.
    fn access_log(self, setup: Setup) -> &'static str {
        match (self.software, setup == Setup::Logged) {
            (Software::Nginx, true) => "FOLDER/access.log combined buffer=64k flush=1s",
            (Software::Nginx, false) => "off",
            (Software::Haproxy, true) => "log stdout len 4096 format raw local0",
            (Software::Haproxy, false) => "",
            (Software::Portcullis, true) => "true",
            (Software::Portcullis, false) => "false",
        }
    }

    /// The program and its arguments, with its files in that folder.
    pub(super) fn command(self, folder: &str) -> Vec<String> {
        let config = format!("{folder}/config");
        let arguments: &[&str] = match self.software {
            Software::Nginx => &["-p", folder, "-c", &config, "-e", "/dev/null"],
            Software::Haproxy => &["-db", "-f", &config],
            Software::Portcullis => &["run", "-c", &config],
        };
        [&[self.program], arguments].concat().into_iter().map(str::to_owned).collect()
    }
}

const NGINX: &str = include_str!("peer/nginx.conf");
const HAPROXY: &str = include_str!("peer/haproxy.cfg");
const PORTCULLIS: &str = include_str!("peer/portcullis.yaml");

/// Where Debian's packages of nginx put modules.
const MODULES: &str = "/usr/lib/nginx/modules";
