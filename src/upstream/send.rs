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

use super::Again;
use super::Answer;
use super::AnswerBody;
use super::ForwardError;
use super::Pool;
use super::Server;
use super::Upstream;
use super::connect::Protocol;
use super::connect::connect;
use super::error::Cause;
use super::error::Passed;
use super::link::Link;
use super::server::ServerId;
use super::way::Failed;
use super::way::Way;

impl<B> Pool<B>
where
    B: Body<Data = Bytes> + Again + Default + Send + Unpin + std::fmt::Debug + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Sends a request, its target in origin form and every header as the application is to see it, to one of the
    /// upstream's servers. `client` is who asks, as far as that decides which. For a 101 the caller takes `hyper::upgrade::on` of the response.
    ///
    /// A request of which nothing was written goes on to a new connection, or to the next server, each of which is
    /// tried once. GET, HEAD and OPTIONS without a body are sent once more when a connection ended before any byte
    /// of an answer. What an HTTP/2 server refused unprocessed is sent again, unless more of its body was sent than
    /// the body keeps.
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
            let (mut unwritten, mut refusals) = (0, 0);
            let mut passed = Passed::new();
            let mut fault = None;
            let mut failed =
                ForwardError { server: None, cause: Cause::NoHealthyServer, passed: Passed::new(), is_sent };
            while let Some(server) = upstream.pick(&tried, client) {
                let server = &server;
                passed.extend(fault.take());
                let failure = |cause, passed, is_sent| ForwardError::at(server.name(), cause, passed, is_sent);
                let to_blame = |cause: &Cause| Some((Arc::clone(server.name()), cause.label()));
                let in_flight = server.begin();
                let is_shared = server.speaks_http2 && !may_switch;
                let reused = if may_reuse && !is_shared { self.idle.take(server.id) } else { None };
                let is_new = !is_shared && reused.is_none();
                let way = match reused {
                    Some(link) => Ok(Way::Own(link)),
                    None if is_shared => match self.trunks.at_hand(server) {
                        Some(stream) => Ok(Way::Shared(stream)),
                        None => Box::pin(self.trunks.stream(server, timeouts)).await.map(Way::Shared),
                    },
                    // Seldom needed: it takes no room in every request's future.
                    None => Box::pin(self.open(upstream, server)).await.map(Way::Own),
                };
                let mut way = match way {
                    Ok(way) => way,
                    // Another server would want one, too.
                    Err(cause @ Cause::NoDescriptor) => return Err(failure(cause, passed, is_sent)),
                    Err(cause) => {
                        server.rest(&cause);
                        tried.push(server.id);
                        fault = to_blame(&cause);
                        failed = failure(cause, Passed::new(), is_sent);
                        continue;
                    }
                };
                let spare = (may_repeat || is_shared).then(|| Spare::of(&request));
                let handed = pin!(way.hand_over(request));
                match way.answer(handed, timeouts.response).await {
                    Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS && !may_switch => {
                        return Err(failure(Cause::UnaskedUpgrade, passed, true));
                    }
                    Ok(response) => {
                        server.answered();
                        way.is_answered();
                        let response = AnswerBody::attach(response, way.into_rest(), in_flight, timeouts.response);
                        return Ok(Answer { response, server: Arc::clone(server.name()), passed });
                    }
                    Err(Failed::Unwritten(back, error)) => {
                        request = *back;
                        way.retire();
                        unwritten += 1;
                        let cause = Cause::Closed(error);
                        if is_new || unwritten > MOST_UNWRITTEN {
                            tried.push(server.id);
                            server.left_unanswered(&cause);
                            fault = to_blame(&cause);
                        }
                        failed = failure(cause, Passed::new(), is_sent);
                    }
                    Err(Failed::Refused(error)) => {
                        refusals += 1;
                        let spare = spare.filter(|_| refusals <= MOST_REFUSED);
                        let Some((spare, body)) = spare.and_then(|spare| Some((spare, way.take_back()?))) else {
                            return Err(failure(Cause::Closed(error), passed, true));
                        };
                        request = spare.with(body);
                        // Its connection may be at its end.
                        way.retire();
                        Self::avoid(upstream, &mut tried, server.id);
                        failed = failure(Cause::Closed(error), Passed::new(), is_sent);
                    }
                    Err(Failed::Died(error)) => {
                        is_sent = true;
                        way.retire();
                        let cause = Cause::Closed(error);
                        // A kept connection may be at its end; of a shared one many requests learn one thing.
                        if is_new {
                            server.left_unanswered(&cause);
                        }
                        let Some(spare) = spare.filter(|_| may_repeat) else {
                            return Err(failure(cause, passed, is_sent));
                        };
                        request = spare.with(B::default());
                        may_repeat = false;
                        Self::avoid(upstream, &mut tried, server.id);
                        fault = to_blame(&cause);
                        failed = failure(cause, Passed::new(), is_sent);
                    }
                    Err(Failed::Fault(cause)) => {
                        server.left_unanswered(&cause);
                        return Err(failure(cause, passed, true));
                    }
                }
                // What happened to one kept connection may have happened to all.
                may_reuse = false;
            }
            Err(ForwardError { passed, ..failed })
        }
    }

    /// Another server is to be next, if there is one.
    fn avoid(upstream: &Upstream, tried: &mut SmallVec<[ServerId; 4]>, server: ServerId) {
        tried.push(server);
        if !upstream.has_other(tried) {
            tried.pop();
        }
    }

    async fn open(&self, upstream: &Upstream, server: &Server) -> Result<Box<Link<B>>, Cause> {
        let timeouts = &upstream.settings.timeouts;
        let stream = connect(server, timeouts, Protocol::Http1).await?;
        server.gave_connection();
        let home = Arc::downgrade(&self.idle);
        Link::open(stream, server, timeouts.idle, home).await.map(Box::new).map_err(Cause::Closed)
    }
}

/// Connections in a row that may be at their end when a request comes to them.
const MOST_UNWRITTEN: u32 = 3;

/// How often a request is sent again that was refused unprocessed.
const MOST_REFUSED: u32 = 2;

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

    fn with<B>(self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target;
        *request.headers_mut() = self.headers;
        request
    }
}
