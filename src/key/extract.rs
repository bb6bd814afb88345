//! Selectors applied to a request: the keys it is counted under.

use smallvec::SmallVec;

use super::Key;
use super::KeySpec;
use crate::request::Fields;
use crate::request::Head;

/// What selectors read from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub head: &'a Head<'a>,
    pub fields: &'a Fields,
    /// The name of the route and the segments its pattern captured.
    pub route: Option<&'a str>,
    pub captures: &'a [(Box<str>, String)],
}

/// The keys of one request under one specification: several when a field was sent several times.
#[derive(Clone, Debug, Default)]
pub struct Extracted {
    pub keys: SmallVec<[Key; 1]>,
    /// Whether a part was missing, unreadable, or may have been missed.
    pub missing: bool,
}

/// A field was sent more often than anyone honest sends it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a field was sent more than {MAX_VALUES} times")]
pub struct TooManyValues;

/// More values than this of one field are an attack, not a form.
pub const MAX_VALUES: usize = 8;

/// Every key that `spec` makes of a request.
pub fn keys(_spec: &KeySpec, _source: &Source<'_>) -> Result<Extracted, TooManyValues> {
    todo!()
}
