//! A Python application, served by uvicorn on a free port, and its output.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::thread::JoinHandle;

use tempfile::TempDir;

use crate::support::{eventually, python};

/// A running application, until it is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    server: Child,
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Served {
    /// Serves `module:application` out of this folder.
    pub(crate) fn start(folder: TempDir, module: &str) -> Self {
        let mut server = python(folder.path())
            .args(["-m", "uvicorn", &format!("{module}:application"), "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("python runs");
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (said, logged) = (server.stderr.take().expect("piped"), server.stdout.take().expect("piped"));
        let reader = thread::spawn({
            let lines = Arc::clone(&lines);
            move || {
                let errors = thread::spawn({
                    let lines = Arc::clone(&lines);
                    move || keep(BufReader::new(said), &lines)
                });
                keep(BufReader::new(logged), &lines);
                errors.join().expect("reading does not panic");
            }
        });
        let mut address = None;
        eventually("the application serves", || {
            let lines = lines.lock().expect("no panic here");
            let place = |line: &String| line.split("running on http://").nth(1)?.split(' ').next()?.parse().ok();
            address = lines.iter().find_map(place);
            address.is_some()
        });
        Self { server, address: address.expect("just found"), lines, reader: Some(reader), _folder: folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The lines of the application's own log with these words.
    pub(crate) fn logged(&self, words: &str) -> Vec<String> {
        let lines = self.lines.lock().expect("no panic here");
        lines.iter().filter(|line| line.contains(words)).cloned().collect()
    }
}

impl Drop for Served {
    #[expect(clippy::print_stderr, reason = "a failed test is to show what the application said")]
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        if thread::panicking() {
            eprintln!("the application said:\n{}", self.lines.lock().map(|lines| lines.join("\n")).unwrap_or_default());
        }
    }
}

fn keep(reader: impl BufRead, lines: &Mutex<Vec<String>>) {
    for line in reader.lines().map_while(Result::ok) {
        lines.lock().expect("no panic here").push(line);
    }
}
