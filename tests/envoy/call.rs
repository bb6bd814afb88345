//! A gRPC client that sends exactly the given bytes.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::Background;

/// A connection to a listener that answers decisions.
pub(crate) struct Connection {
    background: Background,
    send: SendRequest<Bytes>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Called {
    /// `None`: the stream was reset.
    pub(crate) http_status: Option<u16>,
    pub(crate) status: Option<u32>,
    pub(crate) message: String,
    /// The messages of the answer, with their prefixes.
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let background = Background::start();
        let send = background.block_on(async {
            let stream = TcpStream::connect(address).await.expect("it accepts connections");
            let (send, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
            tokio::spawn(connection);
            send
        });
        Self { background, send }
    }

    /// Calls a method with these bytes as its messages.
    pub(crate) fn call(&self, method: &str, body: &[u8]) -> Called {
        self.send(method, body, true)
    }

    /// The same, and sends neither more nor the end.
    pub(crate) fn call_unfinished(&self, method: &str, body: &[u8]) -> Called {
        self.send(method, body, false)
    }

    fn send(&self, method: &str, body: &[u8], ends: bool) -> Called {
        let body = Bytes::copy_from_slice(body);
        self.background.block_on(async {
            let mut ready = self.send.clone().ready().await.expect("it takes another stream");
            let (response, mut stream) = ready.send_request(request(method), false).expect("it takes a request");
            // The answer may come before all of it is sent.
            let _ = stream.send_data(body, ends);
            timeout(PATIENCE, answered(response)).await.expect("it answers in time")
        })
    }

    /// Calls a method, and gives the messages of its answer, without their prefixes, as they come. The last one is followed by
    /// none.
    pub(crate) fn stream(&self, method: &str, body: &[u8]) -> Receiver<Vec<u8>> {
        let body = Bytes::copy_from_slice(body);
        let (sender, messages) = channel();
        let mut answer = self.background.block_on(async {
            let mut ready = self.send.clone().ready().await.expect("it takes another stream");
            let (response, mut stream) = ready.send_request(request(method), false).expect("it takes a request");
            stream.send_data(body, true).expect("it takes the message");
            timeout(PATIENCE, response).await.expect("it answers in time").expect("an answer").into_body()
        });
        self.background.spawn(async move {
            let mut read = Vec::new();
            while let Some(Ok(data)) = answer.data().await {
                let _ = answer.flow_control().release_capacity(data.len());
                read.extend_from_slice(&data);
                while let Some(message) = take_message(&mut read) {
                    let _ = sender.send(message);
                }
            }
        });
        messages
    }

    /// So many calls without messages, as many at once as the other side takes.
    pub(crate) fn call_many(&self, method: &str, count: usize) -> Vec<Option<u32>> {
        self.background.block_on(async {
            let mut calls = JoinSet::new();
            for _ in 0..count {
                let mut ready = self.send.clone().ready().await.expect("it takes another stream");
                let (response, _) = ready.send_request(request(method), true).expect("it takes a request");
                calls.spawn(answered(response));
            }
            let all = async { calls.join_all().await.iter().map(|called| called.status).collect() };
            timeout(PATIENCE, all).await.expect("it answers in time")
        })
    }
}

fn request(method: &str) -> http::Request<()> {
    let request = http::Request::post(format!("http://gateway{method}"));
    request.header("content-type", "application/grpc").header("te", "trailers").body(()).expect("a request")
}

async fn answered(response: h2::client::ResponseFuture) -> Called {
    let reset = || Called { http_status: None, status: None, message: String::new(), body: Vec::new() };
    let Ok(response) = response.await else { return reset() };
    let http_status = Some(response.status().as_u16());
    let (head, mut body) = response.into_parts();
    let mut read = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        read.extend_from_slice(&data);
    }
    let trailers = body.trailers().await.ok().flatten().unwrap_or(head.headers);
    let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    Called { http_status, status: text("grpc-status").parse().ok(), message: text("grpc-message"), body: read }
}

/// The first of the messages, if it is whole.
fn take_message(read: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = read.get(1..PREFIX)?.try_into().map(u32::from_be_bytes).ok()?;
    let end = PREFIX + usize::try_from(length).ok()?;
    (read.len() >= end).then(|| read.drain(..end).skip(PREFIX).collect())
}

/// A message behind its prefix.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message");
    [&[0][..], &length.to_be_bytes(), message].concat()
}

impl Called {
    /// The one message of the answer.
    #[track_caller]
    pub(crate) fn decoded<M: Message + Default>(&self) -> M {
        assert_eq!(self.status, Some(0), "{}", self.message);
        M::decode(&self.body[PREFIX..]).expect("a message")
    }
}

/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
