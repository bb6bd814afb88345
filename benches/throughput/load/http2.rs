//! Requests over HTTP/2: so many streams of a connection at a time, each with one request under way.

use bytes::Bytes;
use h2::client;
use h2::client::SendRequest;
use http::Request;
use http::Response;
use http::header::CONTENT_TYPE;
use http::header::COOKIE;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use super::Outcome;
use super::browser::COOKIES;
use super::connect::SITE;
use super::turns::Turns;
use crate::job::Job;

/// Asks on one connection until the load ends.
pub(super) async fn ask(stream: TlsStream<TcpStream>, job: Job, streams: usize, turns: &Turns) -> Outcome {
    let mut outcome = Outcome::default();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]), "the two agree on HTTP/2");
    let Ok((sender, connection)) = client::handshake(stream).await else {
        outcome.wrong += 1;
        return outcome;
    };
    let connection = tokio::spawn(connection);
    let mut running = JoinSet::new();
    for _ in 0..streams {
        running.spawn(ask_in_turn(sender.clone(), job, turns.clone()));
    }
    drop(sender);
    while let Some(one) = running.join_next().await {
        outcome.add(one.expect("no panic in a stream"));
    }
    connection.abort();
    outcome
}

async fn ask_in_turn(mut sender: SendRequest<Bytes>, job: Job, turns: Turns) -> Outcome {
    let (request, body) = request(job);
    let mut outcome = Outcome::default();
    while let Some((_, sent)) = turns.take() {
        let Ok(answer) = answer(&mut sender, request.clone(), &body).await else {
            outcome.wrong += 1;
            break;
        };
        outcome.note(sent, is_expected(&answer, job));
    }
    outcome
}

/// As a browser sends it, which makes a field of each cookie so that the connection's table can have it.
fn request(job: Job) -> (Request<()>, Bytes) {
    let mut request = Request::builder().method(job.sends.method()).uri(format!("https://{SITE}{}", job.path));
    for (name, value) in job.sends.fields() {
        request = request.header(name, value);
    }
    for cookie in COOKIES {
        request = request.header(COOKIE, cookie);
    }
    (request.body(()).expect("a request"), job.sends.body().into())
}

fn is_expected(answer: &Response<()>, job: Job) -> bool {
    let media_type = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    answer.status().as_u16() == job.status && media_type.starts_with(job.answer.as_bytes())
}

/// The head of one answer that was read to its end.
async fn answer(
    sender: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: &Bytes,
) -> Result<Response<()>, h2::Error> {
    std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
    let (answer, mut sending) = sender.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        sending.send_data(body.clone(), true)?;
    }
    let (head, mut body) = answer.await?.into_parts();
    while let Some(part) = body.data().await {
        body.flow_control().release_capacity(part?.len())?;
    }
    Ok(Response::from_parts(head, ()))
}
