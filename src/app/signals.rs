//! The signals of a service.

use std::io;

use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

/// Signals that are caught: whoever sent one was heard, also before anybody listened.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    replace: Signal,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    End,
    Reload,
    /// Start a process that takes over.
    Replace,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            replace: signal(SignalKind::user_defined2())?,
        })
    }

    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::End,
            _ = self.interrupt.recv() => Asked::End,
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.replace.recv() => Asked::Replace,
        }
    }

    /// What comes of `work`; `None`: the process is to end before. Other signals are heard afterwards.
    pub(super) async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            outcome = work => Some(outcome),
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
        }
    }

    pub(super) async fn end(&mut self) {
        while !matches!(self.next().await, Asked::End) {}
    }
}
