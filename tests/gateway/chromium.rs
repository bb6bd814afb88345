//! A real browser.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A browser on one page, until it is dropped. Every name is this machine, and every certificate is believed.
#[derive(Debug)]
pub(crate) struct Chromium {
    child: Child,
    _profile: TempDir,
}

impl Chromium {
    pub(crate) fn visits(url: &str) -> Self {
        let profile = tempfile::tempdir().expect("a folder for the browser");
        let child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", "--host-resolver-rules=MAP * 127.0.0.1", "--ignore-certificate-errors"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium is installed");
        Self { child, _profile: profile }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
