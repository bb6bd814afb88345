//! Counts the open streams of a connection, and the bytes of their heads.

use std::sync::Arc;

use crate::listen::Connection;

/// Counts a stream and its head until it is dropped.
#[derive(Debug)]
pub(super) struct OpenStream {
    connection: Arc<Connection>,
    head: usize,
}

impl OpenStream {
    pub(super) fn new(connection: &Arc<Connection>, head: usize) -> Self {
        connection.progress.stream_opened(head);
        Self { connection: Arc::clone(connection), head }
    }
}

impl Clone for OpenStream {
    /// Counts the stream once more, without the head, which is kept once.
    fn clone(&self) -> Self {
        Self::new(&self.connection, 0)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.connection.progress.stream_closed(self.head);
    }
}
