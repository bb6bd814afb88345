//! The signals of a service.

use std::io;

use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

/// Signals that are caught. A signal that came before the first [`Self::next`] is not lost.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    replace: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SignalAction {
    Stop,
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

    pub(super) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Stop,
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.hangup.recv() => SignalAction::Reload,
            _ = self.replace.recv() => SignalAction::Replace,
        }
    }

    /// The output of `work`; `None`: a signal to stop came first. Other signals are kept for [`Self::next`].
    pub(super) async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            output = work => Some(output),
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
        }
    }

    /// Returns at the next signal to stop.
    pub(super) async fn stop(&mut self) {
        while !matches!(self.next().await, SignalAction::Stop) {}
    }
}
