//! Sends one request to a server, and to the next if the first one fails.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::StatusCode;
use http_body::Body;
use tokio::select;
use tokio::time::sleep;

use super::attempts::Attempts;
use super::connect::SLOW;
use super::connect::connect;
use super::error::AttemptError;
use super::error::BoxError;
use super::error::FailureCause;
use super::error::ForwardError;
use super::http1::Http1Connection;
use super::informational::OnInformational;
use super::outgoing::OutgoingRequest;
use super::own_connections::Client;
use super::own_connections::signs_connection_in;
use super::pool::Pool;
use super::protocol::Protocol;
use super::replay::ReplayBody;
use super::response::Home;
use super::response::ResponseBody;
use super::response::UpstreamBody;
use super::response::UpstreamResponse;
use super::server::Server;
use super::servers::Upstream;
use super::settings::Settings;
use crate::head::KnownName;
use crate::head::ResponseHead;

impl Pool {
    /// Sends a request to one of the servers. The target is in origin form, and every header is as the application is to
    /// see it. A connection that belongs to `client` goes before all others. A 101 is an answer only to a request with
    /// `Upgrade`; its body becomes a [`Tunnel`](super::Tunnel). `on_informational` is called with informational answers.
    ///
    /// A request of which nothing was written goes on to a new connection, or to the next server. Each server is tried
    /// once. GET, HEAD and OPTIONS without a body are sent once more when a connection ended before any byte of an
    /// answer. A request that an HTTP/2 server refused unprocessed is sent again, unless more of its body was sent than
    /// the body keeps.
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
            // On the heap: what is seldom would take room in every request's future.
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
                    let home = self.home(&mut body, signs_in, client);
                    let body = UpstreamBody::attach(&mut head, body, in_flight, home, timeouts.response);
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
    fn home(&self, body: &mut ResponseBody, signs_in: bool, client: &impl Client) -> Home {
        match body {
            ResponseBody::Http1(body) if signs_in || body.is_own() => {
                body.set_own();
                client.own_connections_from_now_on().map_or(Home::None, |own| Home::Client(Arc::downgrade(&own)))
            }
            _ => Home::Pool(Arc::downgrade(&self.idle)),
        }
    }

    /// A connection of HTTP/1.1 that is made for this request, or the next idle one where that takes long and `may_reuse`.
    async fn connection(
        &self,
        server: &Arc<Server>,
        settings: &Settings,
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
            connected = connect(server, timeouts, Protocol::Http1) => connected,
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
        settings: &Settings,
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
