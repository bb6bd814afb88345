//! The head of a response.

use http::StatusCode;

use super::Fields;
use super::Span;

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    pub status: StatusCode,
    pub fields: Fields,
    /// The words of the application for the status, where they are its own.
    reason: Option<Span>,
}

impl ResponseHead {
    pub fn new(status: StatusCode, fields: Fields) -> Self {
        Self { status, fields, reason: None }
    }

    /// A head without fields.
    pub fn of(status: StatusCode) -> Self {
        Self::new(status, Fields::default())
    }

    /// `reason` stands in the text of the fields.
    #[must_use]
    pub fn with_reason(self, reason: Option<Span>) -> Self {
        Self { reason, ..self }
    }

    /// `None`: the usual words.
    pub fn reason(&self) -> Option<&[u8]> {
        self.reason.map(|reason| self.fields.slice(reason))
    }
}
