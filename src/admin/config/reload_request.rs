//! A reload that an operator asks for, on its way to the thread that controls the gateway.

use tokio::sync::oneshot;

use super::Mistake;
use crate::clock::Timestamp;

/// When the configuration was loaded, by the wall clock, or why the one of before stays in force.
pub type ReloadReply = Result<Timestamp, ReloadRefusal>;

/// Asks for a reload.
#[derive(Debug)]
pub struct ReloadRequest {
    /// Gets the result of a reload that reads its files after this request.
    pub reply: oneshot::Sender<ReloadReply>,
}

/// Why the configuration of before stays in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReloadRefusal {
    Mistakes(Vec<Mistake>),
    /// An address or a file that it names cannot be opened.
    Unusable(String),
    /// The configuration did not come from a file.
    NoFile(&'static str),
    /// Reading it panicked: a defect.
    Panic,
}
