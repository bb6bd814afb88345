//! Header fields in Envoy's messages.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::config::core::v3::HeaderValueOption;
use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::google::protobuf::BoolValue;

use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;
use crate::head::NameSet;

/// The name and the value of a field. The value stands in one of both places.
pub(super) fn name_and_value(header: &HeaderValue) -> (&str, &[u8]) {
    let value = if header.raw_value.is_empty() { header.value.as_bytes() } else { &header.raw_value };
    (&header.key, value)
}

/// Whether a field has two values that differ.
pub(super) fn has_two_values(headers: &[HeaderValue]) -> bool {
    let differ = |HeaderValue { value, raw_value, .. }: &HeaderValue| value.as_bytes() != raw_value;
    headers.iter().any(|header| !header.value.is_empty() && !header.raw_value.is_empty() && differ(header))
}

/// How Envoy writes a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Write {
    /// Beside others of its name.
    Append,
    /// In place of others of its name.
    Replace,
}

/// A field whose value is text, as `ext_authz` reads it. Of other bytes a replacement is left.
pub(super) fn text(name: &str, value: &[u8], write: Write) -> HeaderValueOption {
    let value = String::from_utf8_lossy(value).into_owned();
    option(HeaderValue { key: name.to_owned(), value, raw_value: Vec::new() }, write)
}

/// A field whose value is bytes, as `ext_proc` reads it.
pub(super) fn raw(name: &str, value: &[u8], write: Write) -> HeaderValueOption {
    option(HeaderValue { key: name.to_owned(), value: String::new(), raw_value: value.to_vec() }, write)
}

#[expect(deprecated, reason = "ext_proc of Envoy does not append without `append`")]
fn option(header: HeaderValue, write: Write) -> HeaderValueOption {
    let (append, append_action) = match write {
        Write::Append => (true, HeaderAppendAction::AppendIfExistsOrAdd),
        Write::Replace => (false, HeaderAppendAction::OverwriteIfExistsOrAdd),
    };
    HeaderValueOption {
        header: Some(header),
        append: Some(BoolValue { value: append }),
        append_action: append_action.into(),
        ..HeaderValueOption::default()
    }
}

/// How a field of the gateway is written beside those of the application's answer. The gateway alone sets the id of the
/// request.
pub(super) fn beside_the_answer(name: Name<'_>) -> Write {
    if name == KnownName::X_REQUEST_ID.into() { Write::Replace } else { Write::Append }
}

/// The fields of an answer in place of the application's. Envoy writes the framing itself.
pub(super) fn of_answer(
    fields: &Fields,
    option: fn(&str, &[u8], Write) -> HeaderValueOption,
) -> Vec<HeaderValueOption> {
    let mut options: Vec<HeaderValueOption> = Vec::new();
    for field in fields.iter() {
        let name = field.name.as_str();
        if matches!(field.name, Name::Known(known) if FRAMING.has(known)) {
            continue;
        }
        let is_there = |there: &HeaderValueOption| there.header.as_ref().is_some_and(|header| header.key == name);
        let write = if options.iter().any(is_there) { Write::Append } else { Write::Replace };
        options.push(option(name, field.value, write));
    }
    options
}

const FRAMING: NameSet = NameSet::of(&[KnownName::CONNECTION, KnownName::CONTENT_LENGTH, KnownName::TRANSFER_ENCODING]);
