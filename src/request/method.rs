//! Every method that an application might take a request for, beside the one that was sent.

use std::borrow::Cow;

use http::HeaderName;
use smallvec::SmallVec;

use super::BodyFields;
use super::RequestHead;
use super::header::header_values;
use super::query::query_values;

/// Headers in which frameworks take another method than the one sent.
const OVERRIDE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
];

/// The field in which frameworks take another method than the one sent, in the query or the body.
const OVERRIDE_FIELD: &str = "_method";

/// Methods as they were written: several in one text, when a proxy joined two lines.
pub type Overrides<'a> = SmallVec<[Cow<'a, str>; 1]>;

/// What the head says in place of the method.
pub fn head_overrides<'a>(head: &'a RequestHead<'_>) -> Overrides<'a> {
    let mut overrides = Overrides::new();
    // Hardly any request has one: a glance at the names is quicker than three look-ups.
    if head.headers.keys().any(|name| name.as_str().ends_with("-override") || name.as_str().ends_with("-method")) {
        for name in OVERRIDE_HEADERS {
            overrides.extend(header_values(head.headers, name));
        }
    }
    if !head.query.is_empty() {
        overrides.extend(query_values(head.query, OVERRIDE_FIELD));
    }
    overrides
}

/// What the body says in place of the method.
pub fn body_overrides(fields: &BodyFields) -> Overrides<'_> {
    if fields.is_empty() {
        return Overrides::new();
    }
    fields.form(OVERRIDE_FIELD).chain(fields.json(OVERRIDE_FIELD)).collect()
}

/// Each method in overrides, as written.
pub fn methods_in<'o>(overrides: &'o [Cow<'_, str>]) -> impl Iterator<Item = &'o str> {
    overrides.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|method| !method.is_empty())
}
