//! Connections of one core to the servers, kept between requests.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::Response;
use http_body::Body;
use hyper::body::Incoming;

use super::ForwardError;
use super::Upstream;

/// The connections of one core. `B` is the body of requests.
#[derive(Debug)]
pub struct Pool<B> {
    body: PhantomData<B>,
}

/// What an application answered. Its body gives the connection back when it has ended.
#[derive(Debug)]
pub struct Answer {
    pub response: Response<AnswerBody>,
    /// The server that answered, as written in the configuration.
    pub server: Arc<str>,
}

/// The body of an answer.
#[derive(Debug)]
pub struct AnswerBody {
    pub incoming: Incoming,
}

impl<B> Pool<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub fn new() -> Self {
        todo!()
    }

    /// Sends a request, its target in origin form and every header as the application is to see it, to one of the
    /// upstream's servers. For a 101 the caller takes `hyper::upgrade::on` of the response.
    pub async fn send(&self, _upstream: &Arc<Upstream>, _request: Request<B>) -> Result<Answer, ForwardError> {
        todo!()
    }
}
