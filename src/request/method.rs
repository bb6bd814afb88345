//! Method overrides: every method, other than the one that was sent, that an application may give to a request.

use std::borrow::Cow;

use caseless::Caseless;
use smallvec::SmallVec;
use unicode_normalization::UnicodeNormalization;

use super::fields::BodyFields;
use super::head::RequestHead;
use super::header::header_values;
use super::percent;
use super::percent::Escapes;
use super::query::RequestQuery;
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
        overrides.extend(head.query.values(OVERRIDE_FIELD));
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

/// Whether a query may name a method that [`head_overrides`] does not find.
pub fn query_may_hide_a_method(query: &RequestQuery<'_>) -> bool {
    query.judge(OVERRIDE_FIELD).is_err() && query.readings().any(|query| may_spell_method(query.as_bytes()))
}

/// Whether a body may name a method that [`body_overrides`] does not find.
pub fn body_may_hide_a_method(head: &RequestHead<'_>, fields: &BodyFields) -> bool {
    let is_understood = fields.judge_form(OVERRIDE_FIELD).is_ok() && fields.judge_json(OVERRIDE_FIELD).is_ok();
    !is_understood && may_have_fields(head) && (!fields.is_seen() || fields.texts().any(may_spell_method))
}

/// Frameworks look for the method field in forms and in JSON, some of them for every method. Other kinds of uploads are
/// neither.
fn may_have_fields(head: &RequestHead<'_>) -> bool {
    let mut kinds = header_values(head.fields, KnownName::CONTENT_TYPE).peekable();
    let is_one = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        ["form-urlencoded", "multipart", "json", "text/"].into_iter().any(|part| kind.contains(part))
    };
    kinds.peek().is_none() || kinds.any(|kind| is_one(&kind))
}

/// Whether the letters of the override field stand in a text, however it is written.
fn may_spell_method(text: &[u8]) -> bool {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_LAYERS {
        let Some(decoded) = percent::decode(&text, Escapes { plus: false, code_units: true }) else { break };
        text = Cow::Owned(decoded);
    }
    // Escapes of JSON and of mail headers hide letters.
    if memchr::memchr(b'\\', &text).is_some() || memchr::memmem::find(&text, b"=?").is_some() {
        return true;
    }
    let text = percent::text(text);
    let letters: String = if text.is_ascii() {
        text.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
    } else {
        text.nfkc().filter(|char| char.is_alphanumeric()).default_case_fold().collect()
    };
    letters.contains("method")
}

/// As many layers of escapes as paths are decoded.
const MAX_LAYERS: usize = 3;

/// Each method in the overrides, as written.
pub fn methods_in<'o>(overrides: &'o [Cow<'_, str>]) -> impl Iterator<Item = &'o str> {
    overrides.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|method| !method.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_hides_a_method_only_where_its_letters_may_stand() {
        for query in
            ["_method[]=PUT", "?_method=PUT", "a=1;_m%65thod=PUT", "_%2565thod=%zz&_m%2565thod", "x[_method]=PUT"]
        {
            assert!(query_may_hide_a_method(&RequestQuery::new("/", Some(query))), "{query}");
        }
        for query in ["", "_method=PUT", "a=1;b=2", "%zz", "payment_method=card", "method=x&a[b]=c"] {
            assert!(!query_may_hide_a_method(&RequestQuery::new("/", Some(query))), "{query}");
        }
    }
}
