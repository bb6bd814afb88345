//! What the gateway charges for a request.

use std::borrow::Cow;

use bytes::Bytes;
use portcullis::rules::client::ClientIp;
use portcullis::rules::key::{KeyPart, Spelling, ValueSource, extract};
use portcullis::rules::request::text::normalise;
use portcullis::rules::request::{BodyFields, CanonicalHead};
use portcullis::wire::http1::server::{HeadLimits, parse};

use crate::case::Case;

/// The name that is guessed at.
pub(crate) const NAME: &str = "alice";

/// `inspect_body` as it is by default.
const INSPECTED: usize = 64 * 1024;

/// The selectors whose value could be what a reader reads as this field of this source.
pub(crate) fn selectors(source: &str, name: &str) -> Vec<String> {
    match source {
        "query" | "form" => vec![format!("{source}.{name}"), format!("param.{name}")],
        "param" => vec![format!("param.{name}")],
        "json" if name.contains('.') => vec![format!("json.{name}")],
        "json" => vec![format!("json.{name}"), format!("param.{name}")],
        "cookie" => vec![format!("cookie.{name}")],
        "basic" => vec!["basic.user".to_owned()],
        _ => Vec::new(),
    }
}

/// Whether a value that a reader has read is the name: in the spelling in which this selector compares, or, where none is given,
/// in any.
pub(crate) fn is_the_name(value: &str, selector: Option<&str>) -> bool {
    // What a reader could not decode is no letter, and so no name.
    if value.contains(char::REPLACEMENT_CHARACTER) {
        return false;
    }
    let is_as_sent = selector.is_some_and(|selector| selector.starts_with("query.") || selector.starts_with("cookie."));
    if is_as_sent { value == NAME } else { normalise(value) == NAME }
}

/// The values that are charged under each of these selectors; `None` where the request is refused.
pub(crate) fn values(case: &Case, selectors: &[String]) -> Vec<Option<Vec<String>>> {
    values_of(&case.head("/"), &case.body, selectors)
}

/// The same of a head and a body.
pub(crate) fn values_of(head: &[u8], body: &[u8], selectors: &[String]) -> Vec<Option<Vec<String>>> {
    let limits = HeadLimits { bytes: 64 * 1024, fields: 100 };
    let Ok(Some(parsed)) = parse(head, limits) else { return vec![None; selectors.len()] };
    let head = CanonicalHead::read(&parsed.head, ClientIp::new([127, 0, 0, 1].into()));
    let whole = body.len() <= INSPECTED;
    let start = Bytes::copy_from_slice(&body[..body.len().min(INSPECTED)]);
    let fields = BodyFields::read(&parsed.head.fields, &start, whole, INSPECTED);
    let source = ValueSource::new(&head, &fields);
    let of = |selector: &String| {
        let part = KeyPart { selector: selector.parse().expect("a selector"), spelling: Spelling::Usual };
        let values = extract::values(&part, &source).ok()?.values;
        Some(values.into_iter().map(Cow::into_owned).collect())
    };
    selectors.iter().map(of).collect()
}

/// Whether the name, or the empty value, is among those charged. What is refused reaches no reader.
pub(crate) fn is_covered(values: Option<&Vec<String>>) -> bool {
    values.is_none_or(|values| values.iter().any(|value| value.is_empty() || value == NAME))
}

/// Whether some selector charges neither the name nor the empty value: then no reader may read the name there.
pub(crate) fn at_stake(case: &Case, selectors: &[String]) -> bool {
    values(case, selectors).iter().any(|values| !is_covered(values.as_ref()))
}
