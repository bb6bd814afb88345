//! Sends interim responses of HTTP/1.1.

use std::sync::Arc;

use parking_lot::Mutex;

use super::shared_channel::SharedChannel;
use crate::head::ResponseHead;

/// Sends interim responses to the client of one request.
#[derive(Clone, Debug)]
pub(in crate::listen) struct Http1InterimSender(Arc<Mutex<SharedChannel>>);

impl Http1InterimSender {
    pub(super) fn new(channel: Arc<Mutex<SharedChannel>>) -> Self {
        Self(channel)
    }

    pub(in crate::listen) fn send(&self, head: &ResponseHead) {
        self.0.lock().send_interim(head);
    }
}
