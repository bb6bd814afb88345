//! A takeover as the running gateway sees it: a new process starts, asks for everything, and serves.

use std::future;
use std::io;
use std::process;
use std::process::ExitStatus;

use tokio::sync::oneshot;
use tokio::task;
use tokio::task::JoinHandle;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::command_line::CommandLine;
use super::control_socket::TakeoverRequest;
use super::hand_over::Successor;
use super::hand_over::hand_over;
use super::handover_state::HandoverState;

/// How far the takeover by another process has come.
#[derive(Default)]
pub(in crate::app) struct OutgoingTakeover {
    /// A process that was started here and has not ended: its number, and how it ends.
    started: Option<(u32, oneshot::Receiver<ExitStatus>)>,
    /// A process that is being handed everything.
    handing_over: Option<JoinHandle<io::Result<Successor>>>,
}

impl OutgoingTakeover {
    /// Starts the process that is to take over.
    pub(in crate::app) fn start(&mut self, successor_command: Option<&CommandLine>) {
        let Some(command) = successor_command else {
            return info!("this process cannot be taken over");
        };
        if let Some((process, _)) = &self.started {
            return warn!("process {process} was started to take over and is still starting");
        }
        if !command.is_repeatable() {
            return error!(
                "the configuration came from standard input, which cannot be read again: start `portcullis run -c - \
                 --takeover` with it instead"
            );
        }
        if process::id() == 1 {
            // The end of process 1 is the end of its container, and of the new process with it.
            return error!("process 1 cannot be replaced: start a new container instead");
        }
        match command.start() {
            Ok(started) => {
                info!(process = started.0, "process {} is to take over", started.0);
                self.started = Some(started);
            }
            Err(error) => error!(%error, "cannot start the process that is to take over: {error}; this one goes on"),
        }
    }

    pub(in crate::app) fn is_handing_over(&self) -> bool {
        self.handing_over.is_some()
    }

    pub(in crate::app) fn hand_over(&mut self, request: TakeoverRequest, state: io::Result<HandoverState>) {
        match state {
            Ok(state) => self.handing_over = Some(task::spawn_blocking(move || hand_over(request, &state))),
            Err(error) => error!(%error, "cannot hand over the listening sockets: {error}; this process goes on"),
        }
    }

    /// The process that serves from now on. `None`: a takeover failed, and this process goes on. May be dropped at any
    /// time and called again.
    pub(in crate::app) async fn successor(&mut self) -> Option<Successor> {
        let Self { started, handing_over } = self;
        let failure = tokio::select! {
            handed_over = wait_if_some(handing_over.as_mut()) => {
                *handing_over = None;
                match handed_over.unwrap_or_else(|error| Err(io::Error::other(error))) {
                    Ok(successor) => return Some(successor),
                    Err(error) => format!("the new process was handed the sockets and does not serve: {error}"),
                }
            }
            ended = wait_if_some(started.as_mut().map(|(_, ended)| ended)) => {
                let process = started.take().map_or(0, |(process, _)| process);
                let status = ended.map_or_else(|_| "its exit status is unknown".to_owned(), |status| status.to_string());
                format!("process {process} did not take over: {status}")
            }
        };
        error!("{failure}; this one goes on");
        None
    }
}

/// Waits for the future; for ever where there is none.
async fn wait_if_some<T>(future: Option<&mut (impl Future<Output = T> + Unpin)>) -> T {
    match future {
        Some(future) => future.await,
        None => future::pending().await,
    }
}
