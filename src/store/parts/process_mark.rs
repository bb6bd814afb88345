//! Names a process so that others on its machine know when it is over.

use std::fmt;
use std::fs;
use std::iter;
use std::str::FromStr;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::process::test_kill_process;

use crate::store::random::random_bytes;

/// A process of a machine: `machine-pid-start`. Another one never has the same mark.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessMark {
    /// The running kernel and the namespace of process ids in which `pid` means something.
    machine: String,
    pid: i32,
    /// When it was started, in ticks since the kernel was.
    started: u64,
}

impl ProcessMark {
    /// Of this process. Where the kernel does not tell what is needed, it is a mark that no other process can judge.
    pub fn of_this_process() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        match (machine(), stat(pid)) {
            (Some(machine), Some(stat)) => Self { machine, pid, started: stat.started },
            _ => Self { machine: format!("{:032x}", u128::from_le_bytes(random_bytes())), pid, started: 0 },
        }
    }

    /// Whether the other process is certainly over. Only those of the machine that `self` is on can be known to be.
    pub fn knows_is_over(&self, other: &Self) -> bool {
        let is_known = self.machine == other.machine && self.started > 0;
        let Some(pid) = Pid::from_raw(other.pid).filter(|_| is_known) else { return false };
        // Processes of other users may be hidden in `/proc`, but not from this question.
        match test_kill_process(pid) {
            Err(Errno::SRCH) => true,
            Ok(()) | Err(_) => stat(other.pid).is_some_and(|stat| stat.has_ended || stat.started != other.started),
        }
    }
}

impl fmt::Display for ProcessMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, pid, started } = self;
        write!(f, "{machine}-{pid}-{started}")
    }
}

/// Fails with nothing: another version may have written it otherwise.
impl FromStr for ProcessMark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split('-');
        let (Some(machine), Some(pid), Some(started), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(());
        };
        let (pid, started) = (pid.parse().map_err(drop)?, started.parse().map_err(drop)?);
        Ok(Self { machine: machine.to_owned(), pid, started })
    }
}

/// Of the running kernel, a number that it chose when it started, and of the namespace, its number.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?.into_os_string().into_string().ok()?;
    let is_digit = |letter: &char| letter.is_ascii_hexdigit();
    let number = namespace.chars().filter(char::is_ascii_digit);
    Some(boot.chars().filter(is_digit).chain(iter::once('.')).chain(number).collect())
}

/// What the kernel says of a process.
#[derive(Debug)]
struct Stat {
    started: u64,
    /// It is only waited for.
    has_ended: bool,
}

/// `None`: there is none, or the kernel does not tell.
fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    Some(Stat { has_ended, started: fields.nth(18)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::process::Child;
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().expect("a program")
    }

    fn mark_of(child: &Child) -> ProcessMark {
        let pid = i32::try_from(child.id()).expect("a process id");
        let this = ProcessMark::of_this_process();
        ProcessMark { pid, started: stat(pid).expect("it runs").started, ..this }
    }

    #[test]
    fn a_process_is_known_to_be_over_when_it_is() {
        let this = ProcessMark::of_this_process();
        assert!(!this.knows_is_over(&this));
        let mut child = sleeper();
        let mark = mark_of(&child);
        assert!(!this.knows_is_over(&mark));
        child.kill().expect("it runs");
        // Killed, and nobody has waited for it: it is over as soon as the kernel says so.
        while !stat(mark.pid).is_none_or(|stat| stat.has_ended) {
            std::thread::yield_now();
        }
        assert!(this.knows_is_over(&mark));
        child.wait().expect("it has ended");
        assert!(this.knows_is_over(&mark));
    }

    #[test]
    fn another_process_under_the_same_number_shows_that_the_first_is_over() {
        let this = ProcessMark::of_this_process();
        assert!(this.knows_is_over(&ProcessMark { started: this.started + 1, ..this.clone() }));
    }

    #[test]
    fn nothing_is_known_of_other_machines() {
        let this = ProcessMark::of_this_process();
        let elsewhere = ProcessMark { machine: "0123456789abcdef".to_owned(), pid: i32::MAX, started: 1 };
        assert!(!this.knows_is_over(&elsewhere));
        assert!(this.knows_is_over(&ProcessMark { pid: i32::MAX, ..this.clone() }));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let this = ProcessMark::of_this_process();
        assert_eq!(this.to_string().parse(), Ok(this));
        for wrong in ["", "a-1", "a-1-2-3", "a-x-2", "a-1-x"] {
            assert_eq!(wrong.parse::<ProcessMark>(), Err(()), "{wrong}");
        }
    }
}
