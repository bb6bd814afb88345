//! The way of one request to a server, and to the next when that one does not take it.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::Request;
use http::StatusCode;
use http::Uri;
use http::header::UPGRADE;
use http_body::Body;
use smallvec::SmallVec;

use super::Answer;
use super::AnswerBody;
use super::ForwardError;
use super::Pool;
use super::Server;
use super::Upstream;
use super::connect::connect;
use super::error::Cause;
use super::link::Failed;
use super::link::Link;
use super::server::ServerId;

impl<B> Pool<B>
where
    B: Body<Data = Bytes> + Default + Send + Unpin + std::fmt::Debug + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Sends a request, its target in origin form and every header as the application is to see it, to one of the
    /// upstream's servers. `client` is who asks, as far as that decides which. For a 101 the caller takes `hyper::upgrade::on` of the response.
    ///
    /// A request of which nothing was written goes on to a new connection, or to the next server, each of which is
    /// tried once. GET, HEAD and OPTIONS without a body are sent once more when a connection ended before any byte
    /// of an answer.
    pub fn send(
        &self,
        upstream: &Arc<Upstream>,
        mut request: Request<B>,
        client: IpAddr,
    ) -> impl Future<Output = Result<Answer, ForwardError>> {
        // Outside of the future, which would otherwise have room for the request twice.
        let may_switch = request.headers().contains_key(UPGRADE);
        let mut may_repeat = is_repeatable(&request);
        async move {
            let timeouts = &upstream.settings.timeouts;
            let mut tried = SmallVec::<[ServerId; 4]>::new();
            let mut may_reuse = true;
            let mut is_sent = false;
            let mut failed = ForwardError { server: None, cause: Cause::NoHealthyServer, is_sent };
            while let Some(server) = upstream.pick(&tried, client) {
                let server = &server;
                let failure = |cause, is_sent| ForwardError { server: Some(Arc::clone(server.name())), cause, is_sent };
                let in_flight = server.begin();
                let reused = if may_reuse { self.idle.take(server.id) } else { None };
                let is_new = reused.is_none();
                let mut link = match reused {
                    Some(link) => link,
                    // Seldom needed: it takes no room in every request's future.
                    None => match Box::pin(self.open(upstream, server)).await {
                        Ok(link) => link,
                        Err(cause) => {
                            server.rest(&cause);
                            tried.push(server.id);
                            failed = failure(cause, is_sent);
                            continue;
                        }
                    },
                };
                let spare = may_repeat.then(|| Spare::of(&request));
                let handed = pin!(link.hand_over(request));
                match link.answer(handed, timeouts.response).await {
                    Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS && !may_switch => {
                        return Err(failure(Cause::UnaskedUpgrade, true));
                    }
                    Ok(response) => {
                        let response = AnswerBody::attach(response, link, in_flight, timeouts.response);
                        return Ok(Answer { response, server: Arc::clone(server.name()) });
                    }
                    Err(Failed::Unwritten(back, error)) => {
                        request = *back;
                        if is_new {
                            tried.push(server.id);
                        }
                        failed = failure(Cause::Closed(error), is_sent);
                    }
                    Err(Failed::Died(error)) => {
                        is_sent = true;
                        let Some(spare) = spare else { return Err(failure(Cause::Closed(error), is_sent)) };
                        request = spare.into_request();
                        may_repeat = false;
                        tried.push(server.id);
                        if upstream.pick(&tried, client).is_none() {
                            // There is no other.
                            tried.pop();
                        }
                        failed = failure(Cause::Closed(error), is_sent);
                    }
                    Err(Failed::Fault(cause)) => return Err(failure(cause, true)),
                }
                // What happened to one kept connection may have happened to all.
                may_reuse = false;
            }
            Err(failed)
        }
    }

    async fn open(&self, upstream: &Upstream, server: &Server) -> Result<Box<Link<B>>, Cause> {
        let timeouts = &upstream.settings.timeouts;
        let stream = connect(server, timeouts).await?;
        server.gave_connection();
        let home = Arc::downgrade(&self.idle);
        Link::open(stream, server, timeouts.idle, home).await.map(Box::new).map_err(Cause::Closed)
    }
}

fn is_repeatable<B: Body>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) && request.body().is_end_stream()
}

/// The head of a request that may be needed a second time.
struct Spare {
    method: Method,
    target: Uri,
    headers: HeaderMap,
}

impl Spare {
    fn of<B>(request: &Request<B>) -> Self {
        Self { method: request.method().clone(), target: request.uri().clone(), headers: request.headers().clone() }
    }

    fn into_request<B: Default>(self) -> Request<B> {
        let mut request = Request::new(B::default());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target;
        *request.headers_mut() = self.headers;
        request
    }
}
