//! Informational answers to a client, ahead of the one that counts.

use http::Response;
use http::StatusCode;

use super::http1;
use super::http2;

/// The way of informational answers to the client of one request, as long as it is not answered. What the client does
/// not take in time, and what comes too late, is dropped: nothing depends on it.
#[derive(Clone, Debug, Default)]
pub struct InterimSender(To);

#[derive(Clone, Debug, Default)]
enum To {
    /// A client of HTTP/1.0 would take it for the answer.
    #[default]
    Nobody,
    Http1(http1::Ahead),
    Http2(http2::Ahead),
}

impl InterimSender {
    /// Sends one. What is between neighbours is not among its fields.
    pub fn send(&self, answer: Response<()>) {
        match &self.0 {
            To::Nobody => {}
            To::Http1(ahead) => ahead.send(&answer),
            To::Http2(ahead) => ahead.send(answer),
        }
    }

    /// Asks the client for the body.
    pub fn invite(&self) {
        let mut answer = Response::new(());
        *answer.status_mut() = StatusCode::CONTINUE;
        self.send(answer);
    }
}

impl From<http1::Ahead> for InterimSender {
    fn from(ahead: http1::Ahead) -> Self {
        Self(To::Http1(ahead))
    }
}

impl From<http2::Ahead> for InterimSender {
    fn from(ahead: http2::Ahead) -> Self {
        Self(To::Http2(ahead))
    }
}
