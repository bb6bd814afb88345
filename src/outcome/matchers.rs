//! One side of an outcome: the conditions that an answer must all meet.

use http::StatusCode;

use super::body::BodyPattern;
use super::set_cookie;
use super::status::StatusSet;
use crate::glob::Glob;
use crate::head::FieldName;
use crate::head::Fields;

/// Conditions that must all hold. Without any, every answer matches.
#[derive(Clone, Debug, Default)]
pub struct Matchers {
    pub status: Option<StatusSet>,
    /// A header with this name and a value that matches.
    pub headers: Vec<(FieldName, Glob)>,
    /// A cookie whose name matches is set.
    pub cookies: Vec<Glob>,
    pub body: Option<BodyPattern>,
    /// A dotted path, and the value at it.
    pub json: Vec<(Box<str>, Box<str>)>,
}

/// Whether a side matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SideMatch {
    Yes,
    No,
    /// It cannot be decided yet.
    Unsure,
}

/// The side that is matched. In doubt the outcome is the worse one for the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Success,
    Failure,
}

impl Matchers {
    pub fn needs_body(&self) -> bool {
        self.body.is_some() || !self.json.is_empty()
    }

    pub(super) fn of_head(&self, side: Side, status: StatusCode, fields: &Fields) -> SideMatch {
        let matches = self.status.as_ref().is_none_or(|set| set.contains(status))
            && self
                .headers
                .iter()
                .all(|(name, glob)| fields.get_all(name).any(|value| glob.matches(&String::from_utf8_lossy(value))))
            && self.cookies.iter().all(|name| match side {
                // An application that deletes a cookie has not logged the client in.
                Side::Success => set_cookie::sets(fields, name),
                Side::Failure => set_cookie::names(fields, name),
            });
        match matches {
            false => SideMatch::No,
            true if self.needs_body() => SideMatch::Unsure,
            true => SideMatch::Yes,
        }
    }
}
