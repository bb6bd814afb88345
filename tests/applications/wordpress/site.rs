//! WordPress from the Debian package, installed for one test: its own database, its own folder, PHP's built-in server.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::php;
use crate::support::Program;

/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse";

/// Whom it knows, the owner of the site first.
pub(crate) const NAMES: [&str; 13] =
    ["alice", "mallory", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "kim", "leo"];

/// A running site, until it is dropped.
#[derive(Debug)]
pub(crate) struct WordPress {
    server: Program,
    _database: Program,
    folder: TempDir,
}

impl WordPress {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the site");
        let root = folder.path().join("site");
        php::copy("/usr/share/wordpress", &root);
        let database = php::database(folder.path(), "wordpress");
        let plugins = root.join("wp-content/mu-plugins");
        fs::create_dir(&plugins).expect("a folder in the site");
        write(&root.join("wp-config.php"), include_str!("wp-config.php"));
        write(&plugins.join("told.php"), include_str!("told.php"));
        write(&folder.path().join("install.php"), include_str!("install.php"));
        let mut install = Command::new("php");
        php::said_by(install.current_dir(folder.path()).args(["install.php", PASSWORD]).args(NAMES));
        Self { server: php::built_in(&root), _database: database, folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where its files are.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// How many passwords it has judged for this name.
    pub(crate) fn judged(&self, name: &str) -> usize {
        let told = fs::read(self.folder.path().join("told")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        told.lines().filter(|line| line.strip_prefix("judged ") == Some(name)).count()
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("a file in the folder");
}
