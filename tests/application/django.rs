//! The application: made by `django-admin startproject`, with a database and two accounts.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::thread::JoinHandle;

use tempfile::TempDir;

use crate::support::Gateway;
use crate::support::eventually;

/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse";

/// A running Django project, until it is dropped.
#[derive(Debug)]
pub(crate) struct Django {
    server: Child,
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Django {
    /// A new project with the accounts `alice` and `bob`.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the project");
        let run = |arguments: &[&str]| {
            let output = python(&folder).args(arguments).output().expect("python runs");
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        run(&["-m", "django", "startproject", "shop", "."]);
        fs::write(folder.path().join("beside.py"), include_str!("beside.py")).expect("a file in the folder");
        run(&["manage.py", "migrate", "--verbosity", "0"]);
        for name in ["alice", "bob"] {
            run(&["manage.py", "createsuperuser", "--noinput", "--username", name, "--email", "a@example.com"]);
        }
        Self::serve(folder)
    }

    fn serve(folder: TempDir) -> Self {
        let mut server = python(&folder)
            .args(["-m", "uvicorn", "beside:application", "--port", "0"])
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

    /// The gateway with the login recipe in front of it.
    pub(crate) fn guarded(&self) -> Gateway {
        Gateway::start(format!(
            "
upstream: app
upstreams:
  app: {{servers: ['http://{}'], timeouts: {{response: 60s}}}}
routes:
  - name: login
    match: POST /admin/login
    limits:
      - {{name: login-pace, key: client_ip, rate: 5/hour}}
      - {{name: login-account, key: param.username, rate: 3/hour}}
",
            self.address
        ))
    }

    /// The lines of the application's own log with these words.
    pub(crate) fn logged(&self, words: &str) -> Vec<String> {
        let lines = self.lines.lock().expect("no panic here");
        lines.iter().filter(|line| line.contains(words)).cloned().collect()
    }
}

impl Drop for Django {
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

/// The interpreter of the virtual environment that `tests/run` makes.
fn python(folder: &TempDir) -> Command {
    let python: PathBuf = [env!("CARGO_MANIFEST_DIR"), "target", "application", "bin", "python"].iter().collect();
    assert!(python.exists(), "{} is missing: ./tests/run installs the application", python.display());
    let mut command = Command::new(python);
    command.current_dir(folder.path()).env("DJANGO_SUPERUSER_PASSWORD", PASSWORD).env("PYTHONUNBUFFERED", "1");
    command
}
