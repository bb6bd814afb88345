//! A file system that hangs on demand.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::{fs, thread};

use tempfile::TempDir;

use super::clock::PATIENCE;

/// A mounted file system. Every name in it is a file with the line `192.0.2.1`. Needs the right to mount.
#[derive(Debug)]
pub struct HangingFiles {
    folder: TempDir,
    server: Child,
    told: Receiver<String>,
}

const SERVER: &str = include_str!("hanging.py");

impl HangingFiles {
    #[track_caller]
    pub fn mount() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("files")).expect("a folder to mount at");
        let mut server = Command::new("python3")
            .args(["-c", SERVER])
            .args([folder.path().join("files"), folder.path().join("hang")])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let lines = BufReader::new(server.stdout.take().expect("piped")).lines();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || lines.map_while(Result::ok).all(|line| tell.send(line).is_ok()));
        let files = Self { folder, server, told };
        files.is_told("mounted");
        files
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }

    /// Blocks every access from now on.
    pub fn hang(&self) {
        fs::write(self.switch(), "").expect("a file in the folder");
    }

    /// Waits until an access is blocked.
    #[track_caller]
    pub fn wait_for_blocked_reader(&self) {
        self.is_told("held");
    }

    /// Lets the blocked accesses continue, and blocks no more.
    pub fn recover(&self) {
        fs::remove_file(self.switch()).expect("it hangs");
    }

    fn switch(&self) -> PathBuf {
        Path::new(self.folder.path()).join("hang")
    }

    #[track_caller]
    fn is_told(&self, word: &str) {
        let line = self.told.recv_timeout(PATIENCE);
        assert_eq!(line.as_deref(), Ok(word), "is there /dev/fuse, and the right to mount?");
    }
}

impl Drop for HangingFiles {
    fn drop(&mut self) {
        // Blocked accesses fail.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("-l").arg(self.folder.path().join("files")).status();
    }
}
