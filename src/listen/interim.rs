//! Sends interim responses (1xx) to a client.

use http::StatusCode;

use super::http1::Http1InterimSender;
use super::http2::Http2InterimSender;
use crate::head::ResponseHead;

/// Sends interim responses to the client of one request, until its response begins. Later ones, and those that the client
/// does not read in time, are dropped: the client does not need them.
#[derive(Clone, Debug, Default)]
pub struct InterimSender(Target);

#[derive(Clone, Debug, Default)]
enum Target {
    /// HTTP/1.0: the client would take an interim response for the final one.
    #[default]
    None,
    Http1(Http1InterimSender),
    Http2(Http2InterimSender),
}

impl InterimSender {
    /// Sends an interim response. It must have no fields that belong to one connection.
    pub fn send(&self, head: ResponseHead) {
        match &self.0 {
            Target::None => {}
            Target::Http1(sender) => sender.send(&head),
            Target::Http2(sender) => sender.send(head),
        }
    }

    /// Asks the client for the body (100 Continue).
    pub fn send_continue(&self) {
        self.send(ResponseHead::of(StatusCode::CONTINUE));
    }
}

impl From<Http1InterimSender> for InterimSender {
    fn from(sender: Http1InterimSender) -> Self {
        Self(Target::Http1(sender))
    }
}

impl From<Http2InterimSender> for InterimSender {
    fn from(sender: Http2InterimSender) -> Self {
        Self(Target::Http2(sender))
    }
}
