//! How a process takes part in takeovers.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};
use std::{env, io, thread};

use tokio::sync::oneshot;

/// Whether a process takes over from the one before it, and how its own successor is started.
#[derive(Clone, Debug, Default)]
pub struct TakeoverOptions {
    /// It takes over from the running gateway of the same configuration, if there is one.
    pub takes_over: bool,
    /// The command that starts the process that takes over from this one. `None`: none may.
    pub successor_command: Option<CommandLine>,
}

// The command line of this process, to start the process that takes over.

/// The flag that makes a process take over.
const TAKEOVER: &str = "--takeover";

/// Variables that are meant for this process alone.
const NOT_INHERITED: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// How this process was started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandLine {
    program: OsString,
    arguments: Vec<OsString>,
    /// Whether it would do the same a second time.
    is_repeatable: bool,
}

impl CommandLine {
    pub fn of_this_process() -> Option<Self> {
        let mut words = env::args_os();
        Some(Self { program: words.next()?, arguments: words.collect(), is_repeatable: true })
    }

    /// It reads something that can be read only once.
    #[must_use]
    pub fn unrepeatable(self) -> Self {
        Self { is_repeatable: false, ..self }
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Starts the program of that name, which may be a newer version by now, to take over. Returns its process number, and
    /// a receiver of its exit status.
    pub(super) fn start(&self) -> io::Result<(u32, oneshot::Receiver<ExitStatus>)> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if !self.arguments.iter().any(|argument| argument == TAKEOVER) {
            command.arg(TAKEOVER);
        }
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        let child = command.spawn()?;
        let process = child.id();
        Ok((process, wait_for(child)?))
    }
}

/// A child process that is not waited for stays behind as a zombie.
fn wait_for(mut child: Child) -> io::Result<oneshot::Receiver<ExitStatus>> {
    let (sender, ended) = oneshot::channel();
    thread::Builder::new().name("successor".to_owned()).spawn(move || {
        if let Ok(status) = child.wait() {
            // The receiver is gone once the child has taken over.
            let _ = sender.send(status);
        }
    })?;
    Ok(ended)
}
