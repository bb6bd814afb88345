//! php-fpm, which runs the scripts of nginx.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::site::{SITE, open};
use crate::support::Program;

/// A running php-fpm, and where the site lies.
#[derive(Debug)]
pub(crate) struct Fpm {
    program: Program,
    site: PathBuf,
}

impl Fpm {
    pub(crate) fn start() -> Self {
        let site = std::cell::OnceCell::new();
        let binary = fs::read_dir("/usr/sbin").expect("a folder").filter_map(|file| Some(file.ok()?.path()));
        let mut binaries = binary.filter(|file| file.to_string_lossy().contains("/php-fpm"));
        let binary = binaries.next().expect("it is installed: tests/run does that");
        let program = Program::start(SITE, |folder, address| {
            open(folder);
            let config = format!(
                "[global]\nerror_log = fpm.log\ndaemonize = no\n\
                 [www]\nuser = root\ngroup = root\nlisten = {address}\npm = static\npm.max_children = 4\n"
            );
            fs::write(folder.join("fpm.conf"), config).expect("a file in the folder");
            site.get_or_init(|| folder.join("site"));
            let mut command = Command::new(&binary);
            command.args(["--nodaemonize", "--allow-to-run-as-root", "--prefix"]).arg(folder);
            command.arg("--fpm-config").arg(folder.join("fpm.conf"));
            command
        });
        Self { program, site: site.into_inner().expect("it has started") }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address()
    }

    /// What nginx is told of it.
    pub(crate) fn root(&self) -> String {
        format!("root {};", self.site.display())
    }
}
