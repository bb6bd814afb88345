//! One client's connection, from request to request.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use bytes::BytesMut;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Version;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::ahead::Ahead;
use super::answer;
use super::answer::Asked;
use super::answer::Extent;
use super::body::Body;
use super::buffer_pool;
use super::head::Head;
use super::reader::Reader;
use super::sending::Sending;
use super::tunnel::Tunnel;
use super::wire::Next;
use super::wire::Wire;
use crate::http1::Length;
use crate::http1::Outbox;
use crate::listen::Connection;
use crate::listen::IncomingBody;
use crate::listen::InterimSender;
use crate::listen::OnUpgrade;
use crate::listen::Settings;
use crate::listen::Upgraded;
use crate::listen::channel::Channel;
use crate::listen::connection::Phase;
use crate::listen::connection::Progress;

/// How far a conversation got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::listen) enum End {
    /// All is said. What the client still sends, if anything, nobody reads.
    Said,
    /// This was the answer to a head that was none.
    Refused(StatusCode),
    /// Between two requests or in the middle of one, the client has left, or the answer broke off.
    Broken,
    /// The connection is something else now.
    Upgraded,
}

/// A connection that speaks HTTP/1.1, polled by hand. `answer` makes the future of an answer, `F`, whose body is `B`.
pub(in crate::listen) struct Conversation<'c, S, F, B> {
    connection: &'c Arc<Connection>,
    answer: S,
    wire: Arc<Mutex<Wire>>,
    reader: Reader,
    at: At<F, B>,
    asked: Asked,
    upgrade: Option<oneshot::Sender<Upgraded>>,
    outbox: Outbox,
}

enum At<F, B> {
    /// Before a request, or in the middle of its head.
    Head,
    Answering(Pin<Box<F>>),
    Sending(Sending<B>),
    /// The answer is written, and the body of the request not read.
    Body,
}

impl<'c, S, F, B> Conversation<'c, S, F, B>
where
    S: Fn(Request<IncomingBody>, InterimSender) -> F,
    F: Future<Output = Response<B>>,
    B: http_body::Body<Data = Bytes> + Unpin,
{
    /// `read` was read before its time.
    pub(in crate::listen) fn new(
        connection: &'c Arc<Connection>,
        settings: &Settings,
        channel: Channel,
        read: BytesMut,
        answer: S,
    ) -> Self {
        Self {
            connection,
            answer,
            wire: Arc::new(Mutex::new(Wire::new(Arc::clone(connection), channel, read))),
            reader: Reader::new(settings),
            at: At::Head,
            asked: Asked { is_head: false, version: Version::HTTP_11, keeps_alive: false, takes_trailers: false },
            upgrade: None,
            outbox: Outbox::default(),
        }
    }

    /// Goes as far as it can. Where it stands is noted in the connection's `Progress`.
    pub(in crate::listen) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match &mut self.at {
                At::Head => {
                    let head = ready!(self.reader.poll(&mut self.wire.lock(), self.progress(), cx));
                    match head {
                        Ok(Some(head)) => self.begin(head),
                        Ok(None) => return Poll::Ready(End::Broken),
                        Err(status) => self.refuse(status),
                    }
                }
                At::Answering(answer) => match answer.as_mut().poll(cx) {
                    Poll::Ready(response) => self.send(response),
                    Poll::Pending => {
                        let had_left = self.connection.has_left();
                        if let Poll::Ready(end) = self.poll_failed(cx) {
                            return Poll::Ready(end);
                        }
                        if had_left || !self.connection.has_left() {
                            return Poll::Pending;
                        }
                        // Whoever holds a request wants to know.
                    }
                },
                At::Sending(_) => {
                    if let Some(end) = ready!(self.poll_send(cx)) {
                        return Poll::Ready(end);
                    }
                }
                At::Body => match self.wire.lock().next(cx) {
                    Next::Body => return Poll::Pending,
                    Next::Request => self.at = At::Head,
                    Next::Nothing => return Poll::Ready(End::Said),
                },
            }
        }
    }

    fn progress(&self) -> &'c Progress {
        &self.connection.progress
    }

    fn begin(&mut self, head: Head) {
        let framing = head.framing;
        self.progress().begin();
        self.wire.lock().begin(framing.body);
        let body = match framing.body {
            Length::Known(0) => IncomingBody::default(),
            length => Body::new(Arc::clone(&self.wire), length).into(),
        };
        self.asked = Asked {
            is_head: head.method == Method::HEAD,
            version: head.version,
            keeps_alive: framing.keeps_alive,
            takes_trailers: framing.wishes.trailers,
        };
        let interim = match head.version {
            Version::HTTP_11 => Ahead::new(Arc::clone(&self.wire)).into(),
            _ => InterimSender::default(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = head.method;
        *request.uri_mut() = head.target;
        *request.version_mut() = head.version;
        *request.headers_mut() = head.fields;
        if framing.wishes.upgrade {
            let (sender, upgrade) = OnUpgrade::pair();
            self.upgrade = Some(sender);
            request.extensions_mut().insert(upgrade);
        }
        // On the heap, and gone while the connection rests. It is large: made there it need not be moved there.
        let room = Box::new_uninit();
        self.at = At::Answering(Box::into_pin(Box::write(room, (self.answer)(request, interim))));
    }

    /// A request is under way: ready when nobody will get its answer.
    fn poll_failed(&self, cx: &mut Context<'_>) -> Poll<End> {
        self.wire.lock().poll_failed(cx).map(|()| End::Broken)
    }

    fn refuse(&mut self, status: StatusCode) {
        self.progress().enter(Phase::Head);
        answer::refuse(status, &mut self.outbox);
        self.at = At::Sending(Sending::of_nothing(End::Refused(status)));
    }

    fn send(&mut self, response: Response<B>) {
        let (mut parts, body) = response.into_parts();
        // What is left of the request goes first: its body may have to be given up.
        self.at = At::Body;
        // Who learns with the answer that it is the last one does not send a request that nobody reads.
        self.asked.keeps_alive &= !self.connection.is_retiring() && !self.wire.lock().is_lost();
        self.outbox = buffer_pool::outbox();
        let extent = Extent::of(body.is_end_stream(), &body.size_hint());
        let framed = answer::write(&parts, extent, self.asked, &mut self.outbox);
        self.outbox.fit();
        buffer_pool::keep_fields(mem::take(&mut parts.headers));
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            self.progress().enter(Phase::Tunnel);
            self.at = At::Sending(Sending::of_nothing(End::Upgraded));
        } else {
            self.upgrade = None;
            self.at = At::Sending(Sending::new(body, framed));
        }
    }

    /// Writes an answer. `None`: something may follow it.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let At::Sending(sending) = &mut self.at else { return Poll::Ready(None) };
        loop {
            let mut is_awaited = false;
            // What the client is to be sent is not asked for before it took what it was sent.
            if !self.connection.progress.write_blocked() {
                is_awaited = sending.fill(cx, &mut self.outbox).is_pending();
            }
            match self.wire.lock().poll_write(cx, &mut self.outbox) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Some(End::Broken)),
                Poll::Pending => is_awaited = true,
            }
            if is_awaited {
                return self.poll_failed(cx).map(Some);
            }
            if sending.body.is_none() && self.outbox.is_empty() {
                break;
            }
        }
        let end = sending.end;
        buffer_pool::keep_outbox(mem::take(&mut self.outbox));
        if end.is_none() {
            self.progress().enter(Phase::Idle);
            self.at = At::Body;
        }
        Poll::Ready(end)
    }
}

impl<S, F, B> Conversation<'_, S, F, B> {
    /// Takes the connection back. What still belongs to a request is dropped.
    pub(in crate::listen) fn into_channel(self) -> Option<Channel> {
        self.wire.lock().end().map(|(channel, _)| channel)
    }

    /// Gives the connection to whoever asked for the upgrade. Where nobody did, it is closed.
    pub(in crate::listen) fn hand_over(mut self) {
        let parts = self.wire.lock().end();
        if let (Some((channel, read)), Some(upgrade)) = (parts, self.upgrade.take()) {
            drop(upgrade.send(Tunnel::new(channel, read).into()));
        }
    }

    /// Whether closing now would leave something unread.
    pub(in crate::listen) fn is_unread(&self) -> bool {
        self.wire.lock().is_unread()
    }
}

impl<S, F, B> Drop for Conversation<'_, S, F, B> {
    /// Whoever still reads a body does not keep the connection open with it.
    fn drop(&mut self) {
        let channel = self.wire.lock().end();
        if let Some((mut channel, _)) = channel
            && self.connection.progress.phase() == Phase::Idle
        {
            // Between two requests nothing is cut short, and the client is told so.
            channel.say_goodbye();
        }
    }
}
