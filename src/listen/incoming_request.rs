//! A request as it arrives.

use super::IncomingBody;
use super::OnUpgrade;
use crate::head::RequestHead;

/// A request of a client.
#[derive(Debug)]
pub struct IncomingRequest {
    pub head: RequestHead,
    pub body: IncomingBody,
    /// The connection, for a client that asks for another protocol.
    pub upgrade: Option<OnUpgrade>,
}
