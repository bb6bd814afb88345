//! Requests over HTTP/2: so many streams of a connection at a time, each with one request under way.

use bytes::Bytes;
use h2::client;
use h2::client::SendRequest;
use http::header::{CONTENT_TYPE, COOKIE};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::Outcome;
use super::connect::SITE;
use super::turns::Turns;
use crate::job::Job;

/// What is asked on each stream, and how the answer to it begins.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) request: Request<()>,
    pub(super) body: Bytes,
    pub(super) status: u16,
    pub(super) media_type: &'static str,
    /// How a message begins that is the body behind its flag and its length; `None`: the body may be any.
    pub(super) message_begins: Option<&'static [u8]>,
}

impl Question {
    /// As a browser sends it, which makes a field of each cookie so that the connection's table can have it.
    pub(super) fn of_a_browser(job: Job) -> Self {
        let mut request = Request::builder().method(job.sends.method()).uri(format!("https://{SITE}{}", job.path));
        for (name, value) in job.sends.fields() {
            request = request.header(name, value);
        }
        for cookie in job.sends.cookies() {
            request = request.header(COOKIE, *cookie);
        }
        Self {
            request: request.body(()).expect("a request"),
            body: job.sends.body().into(),
            status: job.status,
            media_type: job.answer,
            message_begins: None,
        }
    }

    fn is_answered_by(&self, answer: &Response<Bytes>) -> bool {
        let media_type = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        answer.status().as_u16() == self.status
            && media_type.starts_with(self.media_type.as_bytes())
            && self
                .message_begins
                .is_none_or(|start| answer.body().get(5..).is_some_and(|message| message.starts_with(start)))
    }
}

/// Asks on one connection until the load ends.
pub(super) async fn ask<S>(stream: S, question: Question, streams: usize, turns: &Turns) -> Outcome
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut outcome = Outcome::default();
    let Ok((sender, connection)) = client::handshake(stream).await else {
        outcome.wrong += 1;
        return outcome;
    };
    let connection = tokio::spawn(connection);
    let mut running = JoinSet::new();
    for _ in 0..streams {
        running.spawn(ask_in_turn(sender.clone(), question.clone(), turns.clone()));
    }
    drop(sender);
    while let Some(one) = running.join_next().await {
        outcome.add(one.expect("no panic in a stream"));
    }
    connection.abort();
    outcome
}

async fn ask_in_turn(mut sender: SendRequest<Bytes>, question: Question, turns: Turns) -> Outcome {
    let mut outcome = Outcome::default();
    while let Some((_, sent)) = turns.take() {
        let Ok(answer) = answer(&mut sender, question.request.clone(), &question.body).await else {
            outcome.wrong += 1;
            break;
        };
        if turns.is_counted(sent) {
            outcome.note(sent, question.is_answered_by(&answer));
        }
    }
    outcome
}

/// One answer that was read to its end; of its body the first part is kept.
async fn answer(
    sender: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: &Bytes,
) -> Result<Response<Bytes>, h2::Error> {
    std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
    let (answer, mut sending) = sender.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        sending.send_data(body.clone(), true)?;
    }
    let (head, mut body) = answer.await?.into_parts();
    let mut first = Bytes::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        if first.is_empty() {
            first = part;
        }
    }
    body.trailers().await?;
    Ok(Response::from_parts(head, first))
}
