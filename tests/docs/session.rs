//! A shell in its own folder and network, which runs the commands of a page as they are written.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::support::{binary, eventually, named_files};

/// The commands of a page take less, in seconds.
const LONGEST: &str = "120";

/// Everything that it starts ends with it.
#[derive(Debug)]
pub(crate) struct Session {
    shell: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
    folder: TempDir,
    commands: usize,
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: String,
    pub(crate) output: String,
}

impl Session {
    /// Nothing but a loopback is reachable, so that the usual ports are free.
    pub(crate) fn start() -> Self {
        let folder = folder();
        let binaries = Path::new(binary()).parent().expect("it stands in a folder");
        let path = format!("{}:{}:/usr/sbin:/sbin", binaries.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("timeout")
            .args([LONGEST, "unshare", "--net", "--map-root-user", "--pid", "--fork", "--kill-child", "sh"])
            .current_dir(folder.path())
            .env("PATH", path)
            .env("OPS_WEBHOOK", "http://127.0.0.1:9095/portcullis")
            .env("XDG_RUNTIME_DIR", folder.path())
            .env_remove("PORTCULLIS_ADMIN")
            .env_remove("PORTCULLIS_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("timeout is a part of coreutils");
        let orders = shell.stdin.take().expect("piped");
        let reports = BufReader::new(shell.stdout.take().expect("piped"));
        let mut session = Self { shell, orders, reports, folder, commands: 0 };
        assert_eq!(session.run("ip link set lo up").code, "0", "a network namespace: {session:?}");
        session
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file in the folder");
    }

    /// Runs a command to its end.
    pub(crate) fn run(&mut self, command: &str) -> Ended {
        let (script, output) = self.script(command);
        let code = self.order(&format!(". ./{script} > {output} 2>&1 < /dev/null; printf 'ended %s\\n' $?"));
        Ended { code, output: self.read(&output) }
    }

    /// Starts a command that goes on to the end of the session, and waits until it listens.
    #[track_caller]
    pub(crate) fn background(&mut self, command: &str) {
        const READY: [&str; 3] = ["listening on ", " runs on ", "Ready to accept connections"];
        let (script, output) = self.script(command);
        // A process group of its own: what the command starts can be ended with it.
        self.order(&format!("setsid sh ./{script} > {output} 2>&1 < /dev/null & LAST=$!; printf 'ended 0\\n'"));
        eventually("it listens", || READY.iter().any(|words| self.read(&output).contains(words)));
    }

    /// The same in place of the one that was started so before.
    #[track_caller]
    pub(crate) fn serve(&mut self, command: &str) {
        self.order("[ -z \"$SERVER\" ] || { kill -- -$SERVER; wait $SERVER; } 2> /dev/null; printf 'ended 0\\n'");
        self.background(command);
        self.order("SERVER=$LAST; printf 'ended 0\\n'");
    }

    /// Writes a command to a file; its name and that of its output.
    fn script(&mut self, command: &str) -> (String, String) {
        self.commands += 1;
        let (script, output) = (format!(".command-{}", self.commands), format!(".output-{}", self.commands));
        self.write(&script, &format!("{command}\n"));
        self.write(&output, "");
        (script, output)
    }

    fn order(&mut self, line: &str) -> String {
        writeln!(self.orders, "{line}").expect("the shell reads");
        let mut report = String::new();
        self.reports.read_line(&mut report).expect("the shell reports");
        let code = report.trim().strip_prefix("ended ").unwrap_or_else(|| panic!("{line}: the shell said {report:?}"));
        code.to_owned()
    }

    fn read(&self, name: &str) -> String {
        let output = fs::read(self.folder.path().join(name)).expect("a file in the folder");
        String::from_utf8_lossy(&output).into_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A folder with the files that pages name, as their reader would have them.
pub(crate) fn folder() -> TempDir {
    let folder = named_files();
    let copied = Command::new("cp").args(["-r", "config"]).arg(folder.path()).status().expect("cp is installed");
    assert!(copied.success(), "config/ is copied");
    folder
}
