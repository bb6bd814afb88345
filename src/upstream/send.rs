//! Sends one request to a server, and to the next if the first one fails.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use smallvec::SmallVec;
use tokio::select;
use tokio::time::sleep;

use super::connect::{SLOW, connect};
use super::error::{AttemptError, BoxError, FailureCause, ForwardError};
use super::http1::Http1Connection;
use super::pool::Pool;
use super::response::{ConnectionOwner, ResponseBody, UpstreamBody, UpstreamResponse};
use super::server::Server;
use super::servers::Upstream;
use crate::upstream::error::PreviousAttempts;
use crate::upstream::pool::{Client, signs_connection_in};
use crate::upstream::response::{OnInformational, ServerProtocol};
use crate::upstream::server::ServerId;
use crate::upstream::servers::UpstreamSettings;
use crate::wire::head::{KnownName, RequestHead, ResponseHead};

impl Pool {
    /// Sends a request to one of the servers. The target is in origin form, and the headers are as the application gets
    /// them. A connection that belongs to `client` goes before all others. A 101 is an answer only to a request with
    /// `Upgrade`; its body becomes a [`Tunnel`](super::Tunnel). `on_informational` is called with informational
    /// answers.
    ///
    /// If nothing of a request was written, it is sent over a new connection, or to the next server. Each server is
    /// tried once. GET, HEAD and OPTIONS without a body are sent once more when a connection ended before any byte of
    /// an answer. A request that an HTTP/2 server refused unprocessed is sent again, unless more of its body was sent
    /// than the body keeps.
    pub async fn send<B>(
        &self,
        upstream: &Arc<Upstream>,
        mut request: OutgoingRequest<'_, B>,
        client: &impl Client,
        mut on_informational: impl FnMut(ResponseHead) + Send,
    ) -> Result<UpstreamResponse, ForwardError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + ReplayBody + Default + Send + Unpin + std::fmt::Debug + 'static,
    {
        let may_switch = request.head.fields.has(KnownName::UPGRADE);
        let may_repeat = is_repeatable(&request);
        let settings = &upstream.settings;
        let timeouts = &settings.timeouts;
        let mut attempts = Attempts::new(may_repeat);
        let mut sending = None;
        let mut signs_in = signs_connection_in(&request.head.fields);
        let mut own = client.own_connections().and_then(|own| own.take(upstream));
        while let Some((server, own)) = match own.take() {
            Some(link) => Some((Arc::clone(&link.server), Some(link))),
            None => upstream.pick(&attempts.tried, client.address()).map(|server| (server, None)),
        } {
            let server = &server;
            attempts.begin();
            let in_flight = server.begin_request();
            let is_shared = server.speaks_http2 && !may_switch;
            let kept = match own {
                None if attempts.may_reuse && !is_shared => self.idle.take(server.id),
                own => own,
            };
            let mut is_new = false;
            // On the heap: this rare path would take room in every request's future.
            let link = match kept {
                None if !is_shared => {
                    Box::pin(self.connection(server, settings, attempts.may_reuse, &mut is_new)).await.map(Some)
                }
                kept => Ok(kept),
            };
            let on_informational = &mut on_informational;
            let answered = match link {
                Ok(Some(link)) => {
                    link.exchange(&mut request, &mut sending, timeouts.response, settings.heads, on_informational).await
                }
                Ok(None) => Box::pin(self.over_http2(server, &mut request, settings, on_informational)).await,
                Err(cause) => Err(AttemptError::NotConnected(cause)),
            };
            match answered {
                Ok((head, _)) if head.status == StatusCode::SWITCHING_PROTOCOLS && !may_switch => {
                    return Err(attempts.give_up(server, FailureCause::UnexpectedUpgrade, true));
                }
                Ok((mut head, mut body)) => {
                    server.note_answered();
                    signs_in |= signs_connection_in(&head.fields);
                    let owner = self.owner(&mut body, signs_in, client);
                    let body = UpstreamBody::attach(&mut head, body, in_flight, owner, timeouts.response);
                    return Ok(attempts.succeeded(server, head, body));
                }
                Err(error) => {
                    if matches!(error, AttemptError::Disconnected(_)) {
                        // The request is written from its beginning.
                        sending = None;
                    }
                    attempts.failed(error, upstream, server, is_new)?;
                }
            }
        }
        Err(attempts.exhausted())
    }

    /// Where the connection of an answer goes when the answer has ended. `signs_in`: the application may have signed it in.
    fn owner(&self, body: &mut ResponseBody, signs_in: bool, client: &impl Client) -> ConnectionOwner {
        match body {
            ResponseBody::Http1(body) if signs_in || body.is_own() => {
                body.set_own();
                client
                    .own_connections_or_new()
                    .map_or(ConnectionOwner::None, |own| ConnectionOwner::Client(Arc::downgrade(&own)))
            }
            _ => ConnectionOwner::Pool(Arc::downgrade(&self.idle)),
        }
    }

    /// A connection of HTTP/1.1 that is made for this request, or the next idle one where that takes long and `may_reuse`.
    async fn connection(
        &self,
        server: &Arc<Server>,
        settings: &UpstreamSettings,
        may_reuse: bool,
        is_new: &mut bool,
    ) -> Result<Box<Http1Connection>, FailureCause> {
        let timeouts = &settings.timeouts;
        let idle = async {
            sleep(SLOW).await;
            self.idle.take_next(server.id).await
        };
        let stream = select! {
            biased;
            connected = connect(server, timeouts, ServerProtocol::Http1) => connected,
            link = idle, if may_reuse => return Ok(link),
        };
        *is_new = true;
        let stream = stream?;
        server.note_connected();
        Ok(Box::new(Http1Connection::new(stream, Arc::clone(server), timeouts.idle, settings.max_idle)))
    }

    async fn over_http2<B>(
        &self,
        server: &Arc<Server>,
        request: &mut OutgoingRequest<'_, B>,
        settings: &UpstreamSettings,
        on_informational: OnInformational<'_>,
    ) -> Result<(ResponseHead, ResponseBody), AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + ReplayBody + Default + Send + Unpin + 'static,
    {
        let stream = match self.http2.open_stream(server) {
            Some(stream) => stream,
            None => self.http2.stream(server, settings).await.map_err(AttemptError::NotConnected)?,
        };
        let (head, body) = stream.exchange(request, settings.timeouts.response, on_informational).await?;
        Ok((head, ResponseBody::Http2(Box::new(body))))
    }
}

/// Whether a request may reach an application twice without harm.
fn is_repeatable<B: Body>(request: &OutgoingRequest<'_, B>) -> bool {
    matches!(request.head.method, Method::GET | Method::HEAD | Method::OPTIONS) && request.body.is_end_stream()
}

// A request on its way to a server.

/// A request on its way to a server. Who forwards it keeps it, because it may be sent again.
#[derive(Debug)]
pub struct OutgoingRequest<'r, B> {
    /// Every field is as the application is to see it.
    pub head: &'r mut RequestHead,
    pub body: &'r mut B,
    /// Where the body breaks off, the server's end of the connection is awaited, because the server may be at work. Over HTTP/2
    /// its stream is reset.
    pub awaits_end: bool,
}

// Bodies of requests that may be sent a second time: a server that speaks HTTP/2 can refuse a request unprocessed.

/// A body that can be read again from a point on, if not too much of it was read since.
pub trait ReplayBody {
    /// From here on the body keeps what it gives.
    fn keep(&mut self);

    /// Goes back to where [`Self::keep`] was called. `false`: the body gave more than it keeps.
    fn replay(&mut self) -> bool;

    /// The body is not replayed, and keeps nothing.
    fn stop_keeping(&mut self);
}

// The attempts to send one request: which servers were tried, and whether the request may be sent once more.

/// Connections in a row that may be at their end when a request comes to them.
const MAX_UNWRITTEN: u32 = 3;

/// How often a request is sent again that was refused unprocessed.
const MAX_REFUSALS: u32 = 2;

#[derive(Debug)]
pub(super) struct Attempts {
    /// Servers that are not picked again.
    pub(super) tried: SmallVec<[ServerId; 4]>,
    /// If one kept connection failed, all may have failed: after that only new ones are used.
    pub(super) may_reuse: bool,
    /// The request may be sent once more after its connection ended.
    may_repeat: bool,
    /// Some of the request may have been written to a server.
    is_sent: bool,
    unwritten: u32,
    refusals: u32,
    previous: PreviousAttempts,
    /// The server of the last attempt and its failure. They become a previous attempt when there is a next one.
    failed_server: Option<(Arc<str>, &'static str)>,
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
            failed_server: None,
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
        self.previous.extend(self.failed_server.take());
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
                self.set_failed_server(server, &cause);
                self.note(server, cause);
                return Ok(());
            }
            AttemptError::Unwritten(error) => {
                self.unwritten += 1;
                let cause = FailureCause::Closed(error);
                if is_new || self.unwritten > MAX_UNWRITTEN {
                    self.tried.push(server.id);
                    server.note_unanswered(&cause);
                    self.set_failed_server(server, &cause);
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
                self.set_failed_server(server, &cause);
                self.note(server, cause);
            }
            // No server is to blame.
            AttemptError::BodyBroken { error, is_sent } => {
                return Err(self.give_up(server, FailureCause::RequestBody(error), self.is_sent || is_sent));
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

    fn set_failed_server(&mut self, server: &Server, cause: &FailureCause) {
        self.failed_server = Some((Arc::clone(server.name()), cause.label()));
    }

    fn note(&mut self, server: &Server, cause: FailureCause) {
        self.last_error = ForwardError::at(server.name(), cause, PreviousAttempts::new(), self.is_sent);
    }
}
