//! The attempts to send one request: which servers were tried, and whether the request may be sent once more.

use std::mem;
use std::sync::Arc;

use smallvec::SmallVec;

use super::error::AttemptError;
use super::error::FailureCause;
use super::error::ForwardError;
use super::error::PreviousAttempts;
use super::response::UpstreamBody;
use super::response::UpstreamResponse;
use super::server::Server;
use super::server::ServerId;
use super::servers::Upstream;
use crate::head::ResponseHead;

#[derive(Debug)]
pub(super) struct Attempts {
    /// Servers that are not picked again.
    pub(super) tried: SmallVec<[ServerId; 4]>,
    /// What happened to one kept connection may have happened to all: after that only new ones are used.
    pub(super) may_reuse: bool,
    /// The request may be sent once more after its connection ended.
    may_repeat: bool,
    /// Some of the request may have been written to a server.
    is_sent: bool,
    unwritten: u32,
    refusals: u32,
    previous: PreviousAttempts,
    /// The server of the last attempt and its failure. They become a previous attempt when there is a next one.
    to_blame: Option<(Arc<str>, &'static str)>,
    last_error: ForwardError,
}

impl Attempts {
    pub(super) fn new(may_repeat: bool) -> Self {
        Self {
            tried: SmallVec::new(),
            may_reuse: true,
            may_repeat,
            is_sent: false,
            unwritten: 0,
            refusals: 0,
            previous: PreviousAttempts::new(),
            to_blame: None,
            last_error: ForwardError {
                server: None,
                cause: FailureCause::NoHealthyServer,
                previous_attempts: PreviousAttempts::new(),
                is_sent: false,
            },
        }
    }

    /// The next attempt begins.
    pub(super) fn begin(&mut self) {
        self.previous.extend(self.to_blame.take());
    }

    /// Notes the failure of an attempt at `server`, which `upstream` picked. `is_new`: over a new connection of HTTP/1.1.
    /// An error means that the request is not sent once more.
    pub(super) fn failed(
        &mut self,
        error: AttemptError,
        upstream: &Upstream,
        server: &Server,
        is_new: bool,
    ) -> Result<(), ForwardError> {
        match error {
            // Another server would need a descriptor, too.
            AttemptError::NotConnected(cause @ FailureCause::NoDescriptor) => {
                return Err(self.give_up(server, cause, self.is_sent));
            }
            AttemptError::NotConnected(cause) => {
                server.note_not_connected(&cause);
                self.tried.push(server.id);
                self.blame(server, &cause);
                self.note(server, cause);
                return Ok(());
            }
            AttemptError::Unwritten(error) => {
                self.unwritten += 1;
                let cause = FailureCause::Closed(error);
                if is_new || self.unwritten > MAX_UNWRITTEN {
                    self.tried.push(server.id);
                    server.note_unanswered(&cause);
                    self.blame(server, &cause);
                }
                self.note(server, cause);
            }
            AttemptError::Refused { error, is_whole } => {
                self.refusals += 1;
                let cause = FailureCause::Closed(error);
                if !is_whole || self.refusals > MAX_REFUSALS {
                    return Err(self.give_up(server, cause, true));
                }
                self.avoid(upstream, server);
                self.note(server, cause);
            }
            AttemptError::Disconnected(error) => {
                self.is_sent = true;
                let cause = FailureCause::Closed(error);
                // A kept connection may have been at its end; many requests share the end of a shared one.
                if is_new {
                    server.note_unanswered(&cause);
                }
                if !mem::take(&mut self.may_repeat) {
                    return Err(self.give_up(server, cause, true));
                }
                self.avoid(upstream, server);
                self.blame(server, &cause);
                self.note(server, cause);
            }
            AttemptError::Failed(cause) => {
                server.note_unanswered(&cause);
                return Err(self.give_up(server, cause, true));
            }
        }
        self.may_reuse = false;
        Ok(())
    }

    /// The error of a request that is not sent once more.
    pub(super) fn give_up(&mut self, server: &Server, cause: FailureCause, is_sent: bool) -> ForwardError {
        ForwardError::at(server.name(), cause, mem::take(&mut self.previous), is_sent)
    }

    /// The answer of `server`.
    pub(super) fn succeeded(self, server: &Server, head: ResponseHead, body: UpstreamBody) -> UpstreamResponse {
        UpstreamResponse { head, body, server: Arc::clone(server.name()), previous_attempts: self.previous }
    }

    /// No server is left.
    pub(super) fn exhausted(self) -> ForwardError {
        ForwardError { previous_attempts: self.previous, ..self.last_error }
    }

    /// Another server is to be next, if there is one.
    fn avoid(&mut self, upstream: &Upstream, server: &Server) {
        self.tried.push(server.id);
        if !upstream.has_other(&self.tried) {
            self.tried.pop();
        }
    }

    fn blame(&mut self, server: &Server, cause: &FailureCause) {
        self.to_blame = Some((Arc::clone(server.name()), cause.label()));
    }

    fn note(&mut self, server: &Server, cause: FailureCause) {
        self.last_error = ForwardError::at(server.name(), cause, PreviousAttempts::new(), self.is_sent);
    }
}

/// Connections in a row that may be at their end when a request comes to them.
const MAX_UNWRITTEN: u32 = 3;

/// How often a request is sent again that was refused unprocessed.
const MAX_REFUSALS: u32 = 2;
