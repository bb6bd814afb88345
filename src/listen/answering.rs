//! One request of HTTP/2 being answered, small enough to be moved about by hyper.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use http::Response;

use super::body::Watched;
use super::streams::StreamProgress;

/// A request's future, on the heap: hyper moves what the service returns.
#[derive(Debug)]
pub(super) struct Answering<F> {
    answer: Pin<Box<F>>,
    stream: Arc<StreamProgress>,
}

impl<F> Answering<F> {
    pub(super) fn new(answer: F, stream: Arc<StreamProgress>) -> Self {
        Self { answer: Box::pin(answer), stream }
    }
}

impl<F, B> Future for Answering<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Result<Response<Watched<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.answer.as_mut().poll(cx));
        Poll::Ready(Ok(response.map(|body| Watched::new(body, Arc::clone(&self.stream)))))
    }
}
