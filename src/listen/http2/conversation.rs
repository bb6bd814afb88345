//! One client's connection: streams are opened as they come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use h2::Reason;
use h2::RecvStream;
use h2::server::Builder;
use h2::server::Connection as Speaking;
use h2::server::Handshake;
use h2::server::SendResponse;

use http::StatusCode;
use tokio::time::sleep;
use tokio::time::timeout;

use super::ahead::Ahead;
use super::answer;
use super::frame_tap::FrameTap;
use super::head::Head;
use super::head::Whole;
use super::stream::Open;
use super::stream::Stream;
use super::tunnel::Wanted;
use super::unwritten::Unwritten;
use super::waiting::Waiting;
use crate::http2::Body;
use crate::listen::Connection;
use crate::listen::Handle;
use crate::listen::IncomingBody;
use crate::listen::Refused;
use crate::listen::Settings;
use crate::listen::channel::Channel;

/// A connection that speaks HTTP/2, polled by hand.
pub(in crate::listen) struct Conversation<'c, H> {
    connection: &'c Arc<Connection>,
    settings: &'c Arc<Settings>,
    handler: H,
    waiting: Waiting,
    unwritten: Unwritten,
    at: At,
    winds_down: bool,
}

enum At {
    Shaking(Handshake<FrameTap, Bytes>),
    Speaking(Speaking<FrameTap, Bytes>),
}

impl<'c, H: Handle> Conversation<'c, H> {
    /// `read` was read before its time.
    pub(in crate::listen) fn new(
        connection: &'c Arc<Connection>,
        settings: &'c Arc<Settings>,
        channel: Channel,
        read: BytesMut,
        handler: H,
    ) -> Self {
        let waiting = Waiting::default();
        let most = settings.max_header_bytes;
        let unwritten = Unwritten::default();
        let frame_tap = FrameTap::new(channel, Arc::clone(connection), read, most, waiting.clone(), unwritten.clone());
        let shaking = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(most).unwrap_or(u32::MAX))
            .max_send_buffer_size(SEND_BUFFER)
            .enable_connect_protocol()
            .handshake(frame_tap);
        Self { connection, settings, handler, waiting, unwritten, at: At::Shaking(shaking), winds_down: false }
    }

    /// Goes as far as it can.
    pub(in crate::listen) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            let speaking = match &mut self.at {
                At::Speaking(speaking) => speaking,
                At::Shaking(shaking) => {
                    let mut speaking = ready!(Pin::new(shaking).poll(cx))?;
                    if self.winds_down {
                        speaking.graceful_shutdown();
                    }
                    self.at = At::Speaking(speaking);
                    continue;
                }
            };
            match speaking.poll_accept(cx)? {
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some((request, respond))) => self.open(request.into_body(), respond),
                Poll::Pending => {
                    // Otherwise h2 has written all that it was given.
                    if !self.connection.progress.write_blocked() {
                        self.unwritten.is_through();
                    }
                    self.waiting.settle();
                    let Some(fault) = self.waiting.take_fault() else { return Poll::Pending };
                    speaking.abrupt_shutdown(fault);
                }
            }
        }
    }

    /// Finishes what is under way, and takes nothing new.
    pub(in crate::listen) fn wind_down(&mut self) {
        self.winds_down = true;
        if let At::Speaking(speaking) = &mut self.at {
            speaking.graceful_shutdown();
        }
    }

    fn open(&self, body: RecvStream, mut respond: SendResponse<Bytes>) {
        match self.waiting.take(respond.stream_id().as_u32()) {
            Some(Head::Request(head)) => self.answer(*head, body, respond),
            Some(Head::Refused(refused)) => self.refuse(*refused, body, respond),
            // Each was left before h2 learnt of its stream.
            None => respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }

    fn answer(&self, head: Whole, body: RecvStream, mut respond: SendResponse<Bytes>) {
        let Whole { mut request, length, asks_for_tunnel, size } = head;
        let heads = self.connection.progress.heads() + size;
        if heads > self.settings.max_header_bytes.saturating_mul(LONGEST_HEADS) {
            // It may be sent again: nobody has looked at it.
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        self.connection.progress.begin();
        let (mut incoming, mut tunnel) = (IncomingBody::default(), None);
        if asks_for_tunnel {
            let (wanted, upgrade) = Wanted::new(body);
            request.extensions_mut().insert(upgrade);
            tunnel = Some(wanted);
        } else if !body.is_end_stream() {
            incoming = Body::new(body, length).into();
        }
        let ahead = Ahead::default();
        let interim = ahead.clone().into();
        let answer = self.handler.handle(Arc::clone(self.connection), request.map(|()| incoming), interim);
        let open = Open::new(self.connection, size);
        let (settings, unwritten) = (Arc::clone(self.settings), self.unwritten.clone());
        tokio::spawn(Stream::new(respond, answer, ahead, tunnel, open, settings, unwritten));
    }

    /// A head that is no request is answered, and then its stream reset.
    fn refuse(&self, refused: Refused, body: RecvStream, mut respond: SendResponse<Bytes>) {
        self.connection.progress.begin();
        let is_malformed = refused.status == StatusCode::BAD_REQUEST;
        let head = answer::refusal(refused.status);
        self.handler.refused(self.connection, refused);
        let open = Open::new(self.connection, 0);
        if let Ok(mut stream) = respond.send_response(head, !is_malformed)
            && is_malformed
        {
            tokio::spawn(async move {
                // What it sends meanwhile takes no room from other streams.
                let discarded = timeout(BEHIND_THE_ANSWER, discard(body));
                drop(tokio::join!(discarded, sleep(BEHIND_THE_ANSWER)));
                stream.send_reset(Reason::PROTOCOL_ERROR);
                drop(open);
            });
        }
    }
}

async fn discard(mut body: RecvStream) {
    while let Some(Ok(data)) = body.data().await {
        // The stream may be gone.
        let _ = body.flow_control().release_capacity(data.len());
    }
}

/// Who gets both at once may not look at the answer.
const BEHIND_THE_ANSWER: Duration = Duration::from_millis(100);

/// What a client may send on one stream, and on all streams, before we have read it: buffers we may come to hold.
const STREAM_WINDOW: u32 = 64 * 1024 - 1;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Requests at a time on one connection; browsers use less.
const MAX_STREAMS: u32 = 128;

/// So many heads of requests that are as long as they may be are kept at a time. Those of browsers are a tenth of that.
const LONGEST_HEADS: usize = 32;

/// What waits on one stream for its client to read.
const SEND_BUFFER: usize = 32 * 1024;
