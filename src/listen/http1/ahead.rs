//! What is sent ahead of an answer.

use std::sync::Arc;

use http::Response;
use parking_lot::Mutex;

use super::wire::Wire;

/// The way of informational answers to the client.
#[derive(Clone, Debug)]
pub(in crate::listen) struct Ahead(Arc<Mutex<Wire>>);

impl Ahead {
    pub(super) fn new(wire: Arc<Mutex<Wire>>) -> Self {
        Self(wire)
    }

    pub(in crate::listen) fn send(&self, answer: &Response<()>) {
        self.0.lock().inform(answer);
    }
}
