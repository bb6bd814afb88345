//! The JSON Schema of the configuration, for editors. It is made from the definitions that also read the configuration.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::raw::Document;
use super::raw::RawValue;

/// The schema, by draft 2020-12.
pub fn schema() -> Value {
    let mut definitions = BTreeMap::new();
    let root = Document::schema(&mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "portcullis",
        "$ref": root["$ref"],
        "$defs": definitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_a_definition_and_every_key_a_description() {
        let schema = schema();
        let mut open = vec![&schema];
        while let Some(value) = open.pop() {
            if let Some(reference) = value["$ref"].as_str() {
                let name = reference.trim_start_matches("#/$defs/");
                assert!(schema["$defs"][name].is_object(), "{reference}");
            }
            for (key, property) in value["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].as_str().is_some_and(|text| text.len() > 10), "{key}");
            }
            open.extend(value.as_object().into_iter().flat_map(|object| object.values()));
            open.extend(value.as_array().into_iter().flatten());
        }
    }

    #[test]
    fn keys_refer_to_the_schema_of_their_value() {
        let schema = schema();
        assert_eq!(schema["$defs"]["Listener"]["properties"]["tls"]["$ref"], "#/$defs/ListenerTls");
        assert!(schema["$defs"]["Limit"]["properties"]["distinct"].is_object());
    }
}
