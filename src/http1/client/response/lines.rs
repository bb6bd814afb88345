//! The lines of a head.

use http::StatusCode;
use http::Version;

use super::repair::Repairs;
use crate::head::Fields;
use crate::head::Span;

/// A head, of which the framing is not read yet.
#[derive(Debug)]
pub(super) struct HeadLines {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    /// The words of the application for the status, where they are its own. They stand in the text of the fields.
    pub(super) reason: Option<Span>,
    pub(super) fields: Fields,
    /// What was mended in it.
    pub(super) repairs: Repairs,
    /// In bytes: the length of the head.
    pub(super) length: usize,
}
