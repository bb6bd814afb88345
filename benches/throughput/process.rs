//! Processes on cores of their own, and what the kernel says of them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// Where a process may run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cores {
    /// Where the proxies run.
    First,
    /// Where the load and the application run.
    Second,
    Both,
}

impl Cores {
    pub(crate) fn count(self) -> usize {
        if self == Self::Both { 2 } else { 1 }
    }

    /// A command that runs a program with its arguments there.
    pub(crate) fn command(self, program: &[&str]) -> Command {
        let mut command = Command::new("taskset");
        let list = match self {
            Self::First => "0",
            Self::Second => "1",
            Self::Both => "0,1",
        };
        command.args(["-c", list]).args(program);
        command
    }
}

/// Whether a program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A process that ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        Self { child: command.spawn().expect("the program starts"), stdin: None, stdout: None }
    }

    /// This program again in another role, with the first line it says.
    pub(crate) fn of_this_program(cores: Cores, arguments: &[&str]) -> (Self, String) {
        let this = env::current_exe().expect("this program has a file");
        let mut child = cores
            .command(&[&this.to_string_lossy()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let mut started = Self { child, stdin, stdout };
        let line = started.next_line();
        (started, line)
    }

    /// Waits for the next line that it says.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().expect("a role of this program").read_line(&mut line).expect("text");
        line.trim().to_owned()
    }

    /// Asks it to end, and says whether it has ended in time.
    pub(crate) fn stop(&mut self, within: Duration) -> bool {
        drop(self.stdin.take());
        let has_ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
        if has_ended(&mut self.child) {
            return true;
        }
        // A master process takes its workers with it when it is asked, not when it is killed.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let start = Instant::now();
        while !has_ended(&mut self.child) && start.elapsed() < within {
            thread::sleep(Duration::from_millis(10));
        }
        has_ended(&mut self.child)
    }

    /// Time on a core that this process and its children have had.
    pub(crate) fn cpu_time(&self) -> Duration {
        self.cpu_times().values().sum()
    }

    /// The same of each thread, by its number.
    pub(crate) fn cpu_times(&self) -> HashMap<String, Duration> {
        self.family().iter().flat_map(|pid| cpu_times(*pid)).collect()
    }

    /// Resident memory of this process and its children, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.family().iter().map(|pid| resident_kib(*pid)).sum()
    }

    /// This process and its children.
    pub(crate) fn family(&self) -> Vec<u32> {
        let mut family = vec![self.child.id()];
        let all: Vec<(u32, u32)> = fs::read_dir("/proc")
            .expect("the kernel's view of processes")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, parent(pid)?)))
            .collect();
        let mut known = 0;
        while known < family.len() {
            let children = all.iter().filter(|(_, parent)| *parent == family[known]).map(|(pid, _)| *pid);
            let children: Vec<u32> = children.collect();
            family.extend(children);
            known += 1;
        }
        family
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.stop(Duration::from_secs(2)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// By the kernel's nanoseconds.
fn cpu_times(pid: u32) -> Vec<(String, Duration)> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_task = |task: io::Result<fs::DirEntry>| {
        let task = task.ok()?;
        let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let time = Duration::from_nanos(times.split(' ').next()?.parse().ok()?);
        Some((task.file_name().to_string_lossy().into_owned(), time))
    };
    tasks.filter_map(of_task).collect()
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}
