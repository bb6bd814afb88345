//! Attributes that Envoy adds to what it shows, as its filter is told.

use std::collections::HashMap;

use envoy_types::pb::google::protobuf::Struct;
use envoy_types::pb::google::protobuf::value::Kind;

use crate::fronts::envoy::description::BadDescription;

/// By the name of the filter.
pub(super) type Attributes = HashMap<String, Struct>;

/// The text of an attribute. Where several filters have it, it is one text.
pub(super) fn text<'a>(attributes: &'a Attributes, name: &'static str) -> Result<Option<&'a str>, BadDescription> {
    let mut found = None;
    for value in attributes.values().filter_map(|of_filter| of_filter.fields.get(name)) {
        let Some(Kind::StringValue(text)) = &value.kind else { return Err(BadDescription::Malformed(name)) };
        if found.is_some_and(|there| there != text) {
            return Err(BadDescription::Twice(name));
        }
        found = Some(&**text);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::google::protobuf::Value;

    use super::*;

    #[track_caller]
    fn check(values: &[Kind], expected: Result<Option<&str>, BadDescription>) {
        let of_filter = |kind: &Kind| Struct { fields: [(NAME.to_owned(), Value { kind: Some(kind.clone()) })].into() };
        let filters = (0..).map(|number: usize| format!("filter {number}"));
        let mut attributes: Attributes = filters.zip(values.iter().map(of_filter)).collect();
        attributes.insert("another filter".to_owned(), Struct::default());
        assert_eq!(text(&attributes, NAME), expected);
    }

    const NAME: &str = "source.address";

    #[test]
    fn an_attribute_has_one_text_however_many_filters_have_it() {
        let text = |text: &str| Kind::StringValue(text.to_owned());
        let (one, other) = (text("127.0.0.5:1"), text("127.0.0.6:1"));
        check(&[], Ok(None));
        check(std::slice::from_ref(&one), Ok(Some("127.0.0.5:1")));
        check(&[one.clone(), one.clone()], Ok(Some("127.0.0.5:1")));
        check(&[one.clone(), other], Err(BadDescription::Twice(NAME)));
        check(&[one.clone(), text("")], Err(BadDescription::Twice(NAME)));
        check(&[one, Kind::NumberValue(1.0)], Err(BadDescription::Malformed(NAME)));
    }
}
