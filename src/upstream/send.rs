//! The way of one request to a server, and to the next when that one does not take it.

use std::mem;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::header::UPGRADE;
use http_body::Body;
use smallvec::SmallVec;

use super::ForwardError;
use super::Pool;
use super::ReplayBody;
use super::Server;
use super::Settings;
use super::Upstream;
use super::UpstreamBody;
use super::UpstreamResponse;
use super::connect::Protocol;
use super::connect::connect;
use super::error::AttemptError;
use super::error::BoxError;
use super::error::FailureCause;
use super::error::PreviousAttempts;
use super::http1::Link;
use super::http1::Sending;
use super::response::ResponseBody;
use super::server::ServerId;

impl Pool {
    /// Sends a request, its target in origin form and every header as the application is to see it, to one of the
    /// upstream's servers. `client` is who asks, as far as that decides which. A 101 is an answer only to a request
    /// with `Upgrade`; its body becomes a [`Tunnel`](super::Tunnel). `on_informational` is told of informational answers.
    ///
    /// A request of which nothing was written goes on to a new connection, or to the next server, each of which is
    /// tried once. GET, HEAD and OPTIONS without a body are sent once more when a connection ended before any byte
    /// of an answer. What an HTTP/2 server refused unprocessed is sent again, unless more of its body was sent than
    /// the body keeps.
    pub fn send<B>(
        &self,
        upstream: &Arc<Upstream>,
        mut request: Request<B>,
        client: IpAddr,
        mut on_informational: impl FnMut(Response<()>) + Send,
    ) -> impl Future<Output = Result<UpstreamResponse, ForwardError>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + ReplayBody + Default + Send + Unpin + std::fmt::Debug + 'static,
    {
        // Outside of the future, which would otherwise have room for the request twice.
        let may_switch = request.headers().contains_key(UPGRADE);
        let mut may_repeat = is_repeatable(&request);
        async move {
            let settings = &upstream.settings;
            let timeouts = &settings.timeouts;
            let mut tried = SmallVec::<[ServerId; 4]>::new();
            let mut may_reuse = true;
            let mut is_sent = false;
            let (mut unwritten, mut refusals) = (0, 0);
            let mut previous_attempts = PreviousAttempts::new();
            let mut fault = None;
            let mut failed = ForwardError {
                server: None,
                cause: FailureCause::NoHealthyServer,
                previous_attempts: PreviousAttempts::new(),
                is_sent,
            };
            let mut sending = None;
            while let Some(server) = upstream.pick(&tried, client) {
                let server = &server;
                previous_attempts.extend(fault.take());
                let failure = |cause, previous_attempts, is_sent| {
                    ForwardError::at(server.name(), cause, previous_attempts, is_sent)
                };
                let to_blame = |cause: &FailureCause| Some((Arc::clone(server.name()), cause.label()));
                let in_flight = server.begin();
                let is_shared = server.speaks_http2 && !may_switch;
                let kept = if may_reuse && !is_shared { self.idle.take(server.id) } else { None };
                let is_new = !is_shared && kept.is_none();
                let answered = match kept {
                    Some(link) => {
                        link.exchange(
                            &mut request,
                            &mut sending,
                            timeouts.response,
                            settings.heads,
                            &mut on_informational,
                        )
                        .await
                    }
                    // Seldom: they take no room in every request's future.
                    None if is_shared => {
                        Box::pin(self.over_http2(server, &mut request, settings, &mut on_informational)).await
                    }
                    None => {
                        Box::pin(self.over_new_http1(
                            server,
                            &mut request,
                            &mut sending,
                            settings,
                            &mut on_informational,
                        ))
                        .await
                    }
                };
                match answered {
                    Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS && !may_switch => {
                        return Err(failure(FailureCause::UnexpectedUpgrade, previous_attempts, true));
                    }
                    Ok(response) => {
                        server.answered();
                        let response = UpstreamBody::attach(response, in_flight, timeouts.response);
                        return Ok(UpstreamResponse { response, server: Arc::clone(server.name()), previous_attempts });
                    }
                    // Another server would want one, too.
                    Err(AttemptError::NotConnected(cause @ FailureCause::NoDescriptor)) => {
                        return Err(failure(cause, previous_attempts, is_sent));
                    }
                    Err(AttemptError::NotConnected(cause)) => {
                        server.rest(&cause);
                        tried.push(server.id);
                        fault = to_blame(&cause);
                        failed = failure(cause, PreviousAttempts::new(), is_sent);
                        continue;
                    }
                    Err(AttemptError::Unwritten(error)) => {
                        unwritten += 1;
                        let cause = FailureCause::Closed(error);
                        if is_new || unwritten > MOST_UNWRITTEN {
                            tried.push(server.id);
                            server.note_unanswered(&cause);
                            fault = to_blame(&cause);
                        }
                        failed = failure(cause, PreviousAttempts::new(), is_sent);
                    }
                    Err(AttemptError::Refused { error, is_whole }) => {
                        refusals += 1;
                        if !is_whole || refusals > MOST_REFUSED {
                            return Err(failure(FailureCause::Closed(error), previous_attempts, true));
                        }
                        Self::avoid(upstream, &mut tried, server.id);
                        failed = failure(FailureCause::Closed(error), PreviousAttempts::new(), is_sent);
                    }
                    Err(AttemptError::Disconnected(error)) => {
                        is_sent = true;
                        let cause = FailureCause::Closed(error);
                        // A kept connection may be at its end; of a shared one many requests learn one thing.
                        if is_new {
                            server.note_unanswered(&cause);
                        }
                        if !mem::take(&mut may_repeat) {
                            return Err(failure(cause, previous_attempts, is_sent));
                        }
                        // From its beginning.
                        sending = None;
                        Self::avoid(upstream, &mut tried, server.id);
                        fault = to_blame(&cause);
                        failed = failure(cause, PreviousAttempts::new(), is_sent);
                    }
                    Err(AttemptError::Failed(cause)) => {
                        server.note_unanswered(&cause);
                        return Err(failure(cause, previous_attempts, true));
                    }
                }
                // What happened to one kept connection may have happened to all.
                may_reuse = false;
            }
            Err(ForwardError { previous_attempts, ..failed })
        }
    }

    /// Another server is to be next, if there is one.
    fn avoid(upstream: &Upstream, tried: &mut SmallVec<[ServerId; 4]>, server: ServerId) {
        tried.push(server);
        if !upstream.has_other(tried) {
            tried.pop();
        }
    }

    async fn over_new_http1<B>(
        &self,
        server: &Arc<Server>,
        request: &mut Request<B>,
        sending: &mut Option<Sending>,
        settings: &Settings,
        on_informational: OnInformational<'_>,
    ) -> Result<Response<ResponseBody>, AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Default + Send + Unpin + 'static,
    {
        let timeouts = &settings.timeouts;
        let stream = connect(server, timeouts, Protocol::Http1).await.map_err(AttemptError::NotConnected)?;
        server.note_connected();
        let link = Link::new(stream, Arc::clone(server), timeouts.idle, Arc::downgrade(&self.idle));
        Box::new(link).exchange(request, sending, timeouts.response, settings.heads, on_informational).await
    }

    async fn over_http2<B>(
        &self,
        server: &Arc<Server>,
        request: &mut Request<B>,
        settings: &Settings,
        on_informational: OnInformational<'_>,
    ) -> Result<Response<ResponseBody>, AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + ReplayBody + Default + Send + Unpin + 'static,
    {
        let stream = match self.http2.at_hand(server) {
            Some(stream) => stream,
            None => self.http2.stream(server, settings).await.map_err(AttemptError::NotConnected)?,
        };
        let response = stream.exchange(request, settings.timeouts.response, on_informational).await?;
        Ok(response.map(|incoming| ResponseBody::Http2(Box::new(incoming))))
    }
}

/// Who is told of informational answers.
pub(super) type OnInformational<'h> = &'h mut (dyn FnMut(Response<()>) + Send);

/// Informational answers to one request: more is no application's habit.
pub(super) const MAX_INFORMATIONAL: u32 = 100;

/// Connections in a row that may be at their end when a request comes to them.
const MOST_UNWRITTEN: u32 = 3;

/// How often a request is sent again that was refused unprocessed.
const MOST_REFUSED: u32 = 2;

fn is_repeatable<B: Body>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) && request.body().is_end_stream()
}
