//! Decides when a connection should end: after a timeout, or because connections are drained.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::sync::futures::Notified;
use tracing::debug;

use super::Connection;
use super::Settings;
use super::connections::ConnectionGroup;
use super::connections::DrainStage;
use super::protocol::Protocol;
use super::watchdog::WaitReason;
use super::watchdog::Watchdog;

/// Watches over one connection.
pub(super) struct ConnectionSupervisor<'a> {
    connection: &'a Connection,
    watchdog: Watchdog,
    stage: StageWatch<'a>,
}

/// What a connection should do next.
pub(super) enum SupervisorAction {
    /// Finish the requests in progress, accept no further ones (HTTP/2).
    WindDown,
    /// Try to write again: the socket may take some bytes, or turn out to have failed.
    Retry,
    /// Send a PING: nothing has come for long (HTTP/2).
    Ping,
    End,
}

impl<'a> ConnectionSupervisor<'a> {
    pub(super) fn new(connection: &'a Connection, settings: &Settings) -> Self {
        let watchdog = Watchdog::new(settings);
        let watchdog = if connection.askers.is_some() { watchdog.pinging() } else { watchdog };
        Self { connection, watchdog, stage: StageWatch::new(connection.group()) }
    }

    /// Ready when a connection that is done has had its time to close.
    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.watchdog.start_closing();
        match self.stage.poll(cx) {
            Some(DrainStage::Cut) => Poll::Ready(()),
            _ => self.watchdog.poll(&self.connection.progress, Protocol::Http1, cx).map(|_| ()),
        }
    }

    /// Called when the session is pending.
    pub(super) fn poll(&mut self, protocol: Protocol, cx: &mut Context<'_>) -> Poll<SupervisorAction> {
        let progress = &self.connection.progress;
        match self.stage.poll(cx) {
            Some(DrainStage::Cut) => return Poll::Ready(SupervisorAction::End),
            Some(stage @ (DrainStage::Retiring | DrainStage::Draining)) => {
                if stage == DrainStage::Draining {
                    self.watchdog.shorten();
                }
                // Over HTTP/1, the next response says `Connection: close`.
                if protocol == Protocol::Http2 {
                    // h2 waits until the client has confirmed the GOAWAY, and not every client does.
                    self.watchdog.start_closing();
                    return Poll::Ready(SupervisorAction::WindDown);
                }
            }
            Some(DrainStage::Running) | None => {}
        }
        match self.watchdog.poll(progress, protocol, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(WaitReason::Idle(_)) if protocol == Protocol::Http2 => {
                // A GOAWAY tells the client that a request it has just sent is not answered.
                self.watchdog.start_closing();
                Poll::Ready(SupervisorAction::WindDown)
            }
            Poll::Ready(WaitReason::Sign) => {
                self.watchdog.await_pong(progress);
                Poll::Ready(SupervisorAction::Ping)
            }
            Poll::Ready(WaitReason::Answer(_)) => {
                self.watchdog.extend();
                progress.set_check_requested(true);
                Poll::Ready(SupervisorAction::Retry)
            }
            Poll::Ready(waited_for) if self.watchdog.may_retry_write(waited_for) => {
                progress.set_retries_writes(true);
                Poll::Ready(SupervisorAction::Retry)
            }
            Poll::Ready(waited_for) => {
                debug!(peer = %self.connection.peer, ?waited_for, "connection timed out");
                progress.set_reset_on_close(matches!(waited_for, WaitReason::Write(_) | WaitReason::SlowReader));
                Poll::Ready(SupervisorAction::End)
            }
        }
    }
}

/// Follows the drain stage of a connection's group, without a lock on each poll.
struct StageWatch<'a> {
    group: &'a ConnectionGroup,
    changed: Pin<Box<Notified<'a>>>,
    is_registered: bool,
    known: DrainStage,
}

impl<'a> StageWatch<'a> {
    fn new(group: &'a ConnectionGroup) -> Self {
        Self {
            group,
            changed: Box::pin(group.stage_changed.notified()),
            is_registered: false,
            known: DrainStage::Running,
        }
    }

    /// The stage, if it has changed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<DrainStage> {
        // A task's waker stays the same, so it is registered once.
        if !self.is_registered {
            self.is_registered = true;
            while self.changed.as_mut().poll(cx).is_ready() {
                self.changed.set(self.group.stage_changed.notified());
            }
        }
        let stage = self.group.drain_stage();
        if stage <= self.known {
            return None;
        }
        self.known = stage;
        self.is_registered = false;
        self.changed.set(self.group.stage_changed.notified());
        self.poll(cx).or(Some(stage))
    }
}
