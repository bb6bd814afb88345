//! Requests over HTTP/2: so many streams of a connection at a time, each with one request under way.

use std::time::Instant;

use bytes::Bytes;
use h2::client;
use h2::client::SendRequest;
use http::Request;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use super::HEADERS;
use super::Load;
use super::Outcome;
use super::connect::SITE;

/// Asks on one connection until it is time to stop.
pub(super) async fn ask(stream: TlsStream<TcpStream>, load: &'static Load, until: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]), "the two agree on HTTP/2");
    let Ok((sender, connection)) = client::handshake(stream).await else {
        outcome.wrong += 1;
        return outcome;
    };
    let connection = tokio::spawn(connection);
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        streams.spawn(ask_in_turn(sender.clone(), load, until));
    }
    drop(sender);
    while let Some(one) = streams.join_next().await {
        outcome.add(one.expect("no panic in a stream"));
    }
    connection.abort();
    outcome
}

async fn ask_in_turn(mut sender: SendRequest<Bytes>, load: &'static Load, until: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    while Instant::now() < until {
        let sent = Instant::now();
        let Ok(status) = status(&mut sender, load.job.path).await else {
            outcome.wrong += 1;
            break;
        };
        outcome.note(sent, status == load.job.status);
    }
    outcome
}

/// The status of one answer that was read to its end.
async fn status(sender: &mut SendRequest<Bytes>, path: &str) -> Result<u16, h2::Error> {
    std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
    let mut request = Request::get(format!("https://{SITE}{path}"));
    for (name, value) in HEADERS {
        request = request.header(name, value);
    }
    let (answer, _) = sender.send_request(request.body(()).expect("a request"), true)?;
    let answer = answer.await?;
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    while let Some(part) = body.data().await {
        body.flow_control().release_capacity(part?.len())?;
    }
    Ok(status)
}

/// Of each connection.
const STREAMS: usize = 8;
