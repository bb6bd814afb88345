//! Signals to a process.

use std::fs;
use std::process::Command;

use super::clock::eventually;

/// Sends a signal by its name: `HUP`, `TERM`, `INT`.
#[track_caller]
pub(super) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.expect("kill is installed").success(), "no process to signal");
}

/// Stops a process with SIGSTOP, and returns when none of its threads runs any more.
#[track_caller]
pub(super) fn pause(pid: u32) {
    signal(pid, "STOP");
    eventually("all threads have stopped", || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
        threads.flatten().all(|thread| is_stopped(&fs::read_to_string(thread.path().join("stat")).unwrap_or_default()))
    });
}

pub(super) fn resume(pid: u32) {
    signal(pid, "CONT");
}

/// By the line of `/proc` about a thread: its state stands behind its name, which is in parentheses.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
}
