//! Values of queries and cookies, in order, repeated ones kept.

use std::borrow::Cow;

use http::HeaderMap;

/// Every value of `name` in a query, percent-decoded, `+` as space.
pub fn query_values<'r>(_query: &'r str, _name: &'r str) -> impl Iterator<Item = Cow<'r, str>> {
    std::iter::empty()
}

/// Every value of the cookie `name`, over all Cookie lines.
pub fn cookie_values<'r>(_headers: &'r HeaderMap, _name: &'r str) -> impl Iterator<Item = Cow<'r, str>> {
    std::iter::empty()
}
