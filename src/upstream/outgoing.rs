//! A request on its way to a server.

use crate::head::RequestHead;

/// A request on its way to a server. Who forwards it keeps it, because it may be sent again.
#[derive(Debug)]
pub struct OutgoingRequest<'r, B> {
    /// Every field is as the application is to see it.
    pub head: &'r mut RequestHead,
    pub body: &'r mut B,
}
