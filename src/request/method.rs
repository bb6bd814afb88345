//! Method overrides: every method, other than the one that was sent, that an application may give to a request.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::fields::BodyFields;
use super::head::RequestHead;
use super::header::header_values;
use super::query::query_values;
use crate::head::KnownName;

/// Headers whose method frameworks use instead of the one that was sent.
const OVERRIDE_HEADERS: [KnownName; 3] =
    [KnownName::X_HTTP_METHOD_OVERRIDE, KnownName::X_HTTP_METHOD, KnownName::X_METHOD_OVERRIDE];

/// The field of a query or a body whose method frameworks use instead of the one that was sent.
const OVERRIDE_FIELD: &str = "_method";

/// Methods as they were written. One text has several methods when a proxy joined two header lines.
pub type Overrides<'a> = SmallVec<[Cow<'a, str>; 1]>;

/// The overrides in the head of a request.
pub fn head_overrides<'a>(head: &'a RequestHead<'_>) -> Overrides<'a> {
    let mut overrides = Overrides::new();
    for name in OVERRIDE_HEADERS {
        overrides.extend(header_values(head.fields, name));
    }
    if !head.query.is_empty() {
        overrides.extend(query_values(head.query, OVERRIDE_FIELD));
    }
    overrides
}

/// The overrides in the body of a request.
pub fn body_overrides(fields: &BodyFields) -> Overrides<'_> {
    if fields.is_empty() {
        return Overrides::new();
    }
    fields.form(OVERRIDE_FIELD).chain(fields.json(OVERRIDE_FIELD)).collect()
}

/// Each method in the overrides, as written.
pub fn methods_in<'o>(overrides: &'o [Cow<'_, str>]) -> impl Iterator<Item = &'o str> {
    overrides.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|method| !method.is_empty())
}
