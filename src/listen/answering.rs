//! One request being answered, small enough to be moved about by hyper.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use http::Response;
use http::StatusCode;

use super::body::Watched;
use super::body::Whose;
use super::connection::Phase;

/// A request's future, on the heap: hyper moves what the service returns, twice for each request, and keeps room for
/// it on every idle connection.
#[derive(Debug)]
pub(super) struct Answering<F> {
    answer: Pin<Box<F>>,
    whose: Option<Whose>,
}

impl<F> Answering<F> {
    pub(super) fn new(answer: F, whose: Whose) -> Self {
        Self { answer: Box::pin(answer), whose: Some(whose) }
    }
}

impl<F, B> Future for Answering<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Result<Response<Watched<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.answer.as_mut().poll(cx));
        let whose = self.whose.take().expect("a future is not polled again once it is ready");
        if let Whose::Connection(connection) = &whose
            && response.status() == StatusCode::SWITCHING_PROTOCOLS
        {
            connection.progress.enter(Phase::Tunnel);
        }
        Poll::Ready(Ok(response.map(|body| Watched::new(body, whose))))
    }
}
