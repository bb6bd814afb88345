//! The real binary, started on free ports with a configuration of the test.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::Value;
use tempfile::TempDir;

use super::clock::{PATIENCE, Stopwatch, eventually};
use super::output::Output;
use super::raw_client::RawClient;
use super::request::Request;
use super::signals;

/// Sections that are added to a configuration without them.
const LISTEN: &str = "listen: 127.0.0.1:0\n";
const LOG: &str = "log: {level: info, format: json, requests: true}\n";

/// The log messages that name an address.
const LISTENING: &str = "listening on ";
const ADMIN: &str = "health and metrics on ";

/// The log messages of a reload begin so.
const RELOADED: &str = "configuration reloaded";
const NOT_RELOADED: &str = "configuration not reloaded";

/// Where a gateway has its control socket.
const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// The binary that the tests run: the one at `$PORTCULLIS_BINARY`, or else the one that cargo has built with them.
pub fn binary() -> &'static str {
    static BINARY: LazyLock<String> =
        LazyLock::new(|| env::var("PORTCULLIS_BINARY").unwrap_or_else(|_| BUILT_BY_CARGO.to_owned()));
    &BINARY
}

const BUILT_BY_CARGO: &str = env!("CARGO_BIN_EXE_portcullis");

/// A running gateway; killed when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    folder: Arc<TempDir>,
    environment: Vec<(String, String)>,
    stdout: Output,
    stderr: Output,
    listeners: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
}

impl Gateway {
    /// Starts with this configuration and waits until it serves. `listen` and `log` are added where they are missing.
    #[track_caller]
    pub fn start(config: impl AsRef<str>) -> Self {
        Self::with_files(config, &[])
    }

    /// Starts with files beside the configuration.
    #[track_caller]
    pub fn with_files(config: impl AsRef<str>, files: &[(&str, &str)]) -> Self {
        Self::in_environment(config, files, &[])
    }

    /// Starts with files beside the configuration, and with these environment variables.
    #[track_caller]
    pub fn in_environment(config: impl AsRef<str>, files: &[(&str, &str)], environment: &[(&str, &str)]) -> Self {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::spawn(from_file(binary()), folder_with(config.as_ref(), files), environment)
    }

    /// Starts the binary that cargo has built with the tests, whatever the others run: without optimisation it takes several
    /// times as much of its core for a request.
    #[track_caller]
    pub fn unoptimised(config: impl AsRef<str>, files: &[(&str, &str)]) -> Self {
        Self::spawn(from_file(BUILT_BY_CARGO), folder_with(config.as_ref(), files), Vec::new())
    }

    /// Starts by socket activation: with this socket, and another one that the configuration does not name.
    #[track_caller]
    pub fn activated(config: impl AsRef<str>, socket: impl Into<OwnedFd>) -> Self {
        // Where descriptor 3 is taken the other socket has number 4 already, and would be closed.
        const SCRIPT: &str = "import os, socket, sys; other = socket.create_server(('127.0.0.1', 0)); \
            os.dup2(other.fileno(), 4); os.set_inheritable(4, True); os.dup2(0, 3); os.environ['LISTEN_FDS'] = '2'; \
            os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])";
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        fs::write(folder.path().join("portcullis.yaml"), completed(config.as_ref())).expect("a file in the folder");
        let mut command = Command::new("python3");
        command.args(["-c", SCRIPT, binary(), "run", "-c", "portcullis.yaml"]);
        command.stdin(socket.into());
        Self::spawn(command, Arc::new(folder), Vec::new())
    }

    /// Starts with a configuration that it cannot serve. Returns its exit status and its log.
    pub fn failing(config: impl AsRef<str>) -> (ExitStatus, String) {
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        fs::write(folder.path().join("portcullis.yaml"), completed(config.as_ref())).expect("a file in the folder");
        let ended = from_file(binary()).current_dir(folder.path()).env(RUNTIME, folder.path()).output();
        let ended = ended.expect("the binary starts");
        (ended.status, String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    /// Starts a second process with the same configuration, which takes over from this one, and waits until it serves.
    #[must_use]
    #[track_caller]
    pub fn successor(&self) -> Self {
        let mut command = from_file(binary());
        command.arg("--takeover");
        Self::spawn(command, Arc::clone(&self.folder), self.environment.clone())
    }

    /// Starts a second process with the same configuration, whose takeover fails. Returns its exit status and its log.
    pub fn failing_successor(&self) -> (ExitStatus, String) {
        let ended = from_file(binary())
            .arg("--takeover")
            .current_dir(self.folder.path())
            .env(RUNTIME, self.folder.path())
            .output();
        let ended = ended.expect("the binary starts");
        (ended.status, String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    /// Starts with a limit on file descriptors that the gateway cannot raise.
    #[track_caller]
    pub fn with_descriptor_limit(config: impl AsRef<str>, most: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        fs::write(folder.path().join("portcullis.yaml"), completed(config.as_ref())).expect("a file in the folder");
        let mut command = Command::new("sh");
        let bounded = format!("ulimit -n {most}; exec \"$0\" run -c portcullis.yaml");
        command.args(["-c", &bounded, binary()]);
        Self::spawn(command, Arc::new(folder), Vec::new())
    }

    /// Starts from flags alone, in an empty folder.
    #[track_caller]
    pub fn with_flags(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("an empty folder");
        let mut command = Command::new(binary());
        command.arg("run").args(flags).stdin(Stdio::null());
        Self::spawn(command, Arc::new(folder), Vec::new())
    }

    /// Starts with the configuration on standard input, in a folder with these files.
    #[track_caller]
    pub fn from_standard_input(config: impl AsRef<str>, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file in the folder");
        }
        let (text, mut written) = std::io::pipe().expect("a pipe");
        written.write_all(completed(config.as_ref()).as_bytes()).expect("a pipe has room for a configuration");
        drop(written);
        let mut command = Command::new(binary());
        command.args(["run", "-c", "-"]).stdin(text);
        Self::spawn(command, Arc::new(folder), Vec::new())
    }

    /// Kills the process, as a crash does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills the process and starts it again with the same configuration. Ports that are 0 there become others.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        *self = Self::spawn(from_file(binary()), Arc::clone(&self.folder), std::mem::take(&mut self.environment));
    }

    #[track_caller]
    fn spawn(mut command: Command, folder: Arc<TempDir>, environment: Vec<(String, String)>) -> Self {
        let mut child = command
            .current_dir(folder.path())
            .env(RUNTIME, folder.path())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = Output::of(child.stdout.take().expect("piped"));
        let stderr = Output::of(child.stderr.take().expect("piped"));
        let mut gateway = Self { child, folder, environment, stdout, stderr, listeners: Vec::new(), admin: None };
        eventually("the gateway says what it serves", || gateway.has_started());
        gateway
    }

    fn has_started(&mut self) -> bool {
        if let Some(status) = self.child.try_wait().expect("a child of ours") {
            panic!("the gateway ended with {status}:\n{}", self.stderr().join("\n"));
        }
        // The admin address is the last log line of the start.
        let said = self.log_messages();
        let started = said.iter().any(|line| line.contains("admin address") || line.starts_with(ADMIN));
        self.listeners = addresses_after(&said, LISTENING);
        self.admin = addresses_after(&said, ADMIN).pop();
        started
    }

    /// The address of the first listener.
    #[track_caller]
    pub fn address(&self) -> SocketAddr {
        *self.listeners.first().expect("a listener")
    }

    /// The address of every listener in the log, in order.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        addresses_after(&self.log_messages(), LISTENING)
    }

    #[track_caller]
    pub fn admin(&self) -> SocketAddr {
        self.admin.expect("an admin listener")
    }

    pub fn get(&self, target: &str) -> Request {
        self.request("GET", target)
    }

    pub fn post(&self, target: &str) -> Request {
        self.request("POST", target)
    }

    pub fn request(&self, method: &str, target: &str) -> Request {
        Request::new(self.address(), method, target)
    }

    /// A request to the admin listener. Without a token the API answers only who means this machine.
    #[track_caller]
    pub fn admin_request(&self, method: &str, target: &str) -> Request {
        Request::new(self.admin(), method, target).host(&self.admin().to_string())
    }

    pub fn connect(&self) -> RawClient {
        RawClient::connect(self.address())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the process has had of the processors so far, in ticks of 10 ms.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("a running process");
        let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        [11, 12].iter().map(|field| fields[*field].parse::<u64>().expect("a number")).sum()
    }

    /// The path of a file beside the configuration.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the configuration file and does not wait for the reload.
    pub fn write_config(&self, config: impl AsRef<str>) {
        self.write("portcullis.yaml", &completed(config.as_ref()));
    }

    /// Replaces a file beside the configuration by renaming, as editors and orchestrators do.
    pub fn write(&self, name: &str, text: &str) {
        let draft = self.path(&format!(".{name}.draft"));
        fs::write(&draft, text).expect("a file in the folder");
        fs::rename(draft, self.path(name)).expect("both are in the folder");
    }

    /// Sends a signal by its name: `HUP`, `TERM`, `INT`.
    pub fn signal(&self, name: &str) {
        signals::signal(self.pid(), name);
    }

    /// Stops the process: the kernel still accepts connections, and nothing is answered.
    pub fn pause(&self) {
        signals::pause(self.pid());
    }

    pub fn resume(&self) {
        signals::resume(self.pid());
    }

    /// Stops the process for so long, as a debugger or the host of a virtual machine does.
    pub fn pause_for(&self, span: Duration) {
        self.pause();
        thread::sleep(span);
        self.resume();
    }

    /// Replaces the configuration file and waits for the reload.
    #[track_caller]
    pub fn reload(&self, config: impl AsRef<str>) {
        let before = self.reloads();
        self.write_config(config);
        eventually("the configuration is reloaded", || self.reloads() > before);
    }

    /// The number of reloads in the log, successful and failed.
    pub fn reloads(&self) -> usize {
        self.log_messages().iter().filter(|line| line.starts_with(RELOADED) || line.starts_with(NOT_RELOADED)).count()
    }

    /// The number of failed reloads in the log.
    pub fn failed_reloads(&self) -> usize {
        self.log_messages().iter().filter(|line| line.starts_with(NOT_RELOADED)).count()
    }

    /// Waits until the process ends by itself.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        eventually("the gateway ends", || self.child.try_wait().expect("a child of ours").is_some());
        eventually("all that it printed is read", || self.stdout.has_ended() && self.stderr.has_ended());
        self.child.wait().expect("a child of ours")
    }

    /// The lines of the operational log.
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// The messages of the operational log, each with the changes of a reload, also of the file that the log began in.
    pub fn log_messages(&self) -> Vec<String> {
        let sentence = |line: &String| {
            let line: Value = serde_json::from_str(line).ok()?;
            let changes = line["changes"].as_str().map_or(String::new(), |changes| format!(", {changes}"));
            Some(format!("{}{changes}", line["message"].as_str()?))
        };
        let mut said = self.stderr();
        // It begins so where the log goes to a file.
        let file = said.first().and_then(|line| line.strip_prefix("portcullis: the log goes to ")).map(str::to_owned);
        if let Some(file) = file {
            let text = fs::read_to_string(self.path(&file)).unwrap_or_default();
            said.extend(text.lines().map(str::to_owned));
        }
        said.iter().filter_map(sentence).collect()
    }

    /// The lines of the access log.
    pub fn stdout(&self) -> Vec<String> {
        self.stdout.lines()
    }

    /// The access log line of one path, once it is written.
    #[track_caller]
    pub fn log_line(&self, path: &str) -> Value {
        self.log_line_where(|line| line["path"] == path)
    }

    /// The last line of the request log of which `is_it` holds.
    #[track_caller]
    pub fn log_line_where(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        eventually("the request is logged", || {
            let lines = self.stdout();
            let mut lines = lines.iter().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            found = lines.find(&is_it);
            found.is_some()
        });
        found.expect("just found")
    }

    /// The number of client connections in the metrics. Needs an admin listener.
    #[track_caller]
    pub fn connections(&self) -> usize {
        let metrics = Request::new(self.admin(), "GET", "/metrics").send().text();
        let number = metrics.lines().find_map(|line| line.strip_prefix("portcullis_connections "));
        number.and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most resident memory so far, in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a running process");
        let line = status.lines().find(|line| line.starts_with(name)).expect("a line of that name");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of KiB")
    }
}

impl Drop for Gateway {
    #[expect(clippy::print_stderr, reason = "a failed test is to show what the gateway said")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let waited = Stopwatch::start();
        while waited.elapsed() < PATIENCE && !(self.stdout.has_ended() && self.stderr.has_ended()) {
            thread::sleep(Duration::from_millis(1));
        }
        let log = self.stderr().join("\n");
        if thread::panicking() {
            eprintln!("the gateway said:\n{log}\n{}", self.stdout().join("\n"));
        } else {
            assert!(!log.contains("panicked at"), "a panic in the gateway:\n{log}");
        }
    }
}

fn folder_with(config: &str, files: &[(&str, &str)]) -> Arc<TempDir> {
    let folder = tempfile::tempdir().expect("a folder for the configuration");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file in the folder");
    }
    fs::write(folder.path().join("portcullis.yaml"), completed(config)).expect("a file in the folder");
    Arc::new(folder)
}

fn from_file(binary: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(["run", "-c", "portcullis.yaml"]).stdin(Stdio::null());
    command
}

fn completed(config: &str) -> String {
    let has = |key: &str| config.lines().any(|line| line.starts_with(key));
    let listen = if has("listen:") { "" } else { LISTEN };
    let log = if has("log:") { "" } else { LOG };
    format!("{listen}{log}{config}\n")
}

/// The addresses behind these words, in messages that begin with the words or have a clause that does.
fn addresses_after(said: &[String], words: &str) -> Vec<SocketAddr> {
    let clauses = said.iter().flat_map(|sentence| sentence.split([',', ';']));
    clauses.filter_map(|clause| clause.trim().strip_prefix(words)?.parse().ok()).collect()
}
