//! The schema and `check` take the same values.

use std::fs;
use std::path::Path;

use portcullis::config::source::SourceRange;
use portcullis::config::yaml::{Content, Node};
use portcullis::config::{read, schema};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use crate::{everything, json_schema};

/// What only another key can tell: that a value is valid by itself.
const RELATIONS: [&str; 5] = [
    "does not redirect",
    "never passes a rate of",
    "too many for sliding-window-log",
    "different values are too many to remember",
    "each further ban must be longer",
];

/// Every single value of a file that has everything, with its schema.
fn values<'s>(node: &Node, described: &'s Value, schema: &'s Value, found: &mut Vec<(SourceRange, &'s Value)>) {
    if let Some(reference) = described["$ref"].as_str() {
        return values(node, &schema["$defs"][reference.trim_start_matches("#/$defs/")], schema, found);
    }
    let choices = described["anyOf"].as_array();
    match &node.content {
        Content::Nothing => {}
        Content::Scalar(_) => {
            let is_typed = described["pattern"].is_string() || described["enum"].is_array();
            let is_typed_choice = |choice: &Value| choice["pattern"].is_string() || choice["enum"].is_array();
            if is_typed || choices.is_some_and(|choices| choices.iter().any(is_typed_choice)) {
                found.push((node.at, described));
            }
        }
        Content::List(items) => {
            let lists = choices.into_iter().flatten().chain([described]);
            for described in lists.map(|list| &list["items"]).filter(|items| items.is_object()) {
                for item in items {
                    values(item, described, schema, found);
                }
            }
        }
        Content::Map(entries) => {
            for (name, value) in entries {
                let below = [&described["properties"][&name.text], &described["additionalProperties"]];
                if let Some(described) = below.into_iter().find(|below| below.is_object()) {
                    values(value, described, schema, found);
                }
            }
            for choice in choices.into_iter().flatten().filter(|choice| choice["items"].is_null()) {
                values(node, choice, schema, found);
            }
        }
    }
}

/// The text with another value in one place.
fn replaced(text: &str, at: SourceRange, value: &str) -> String {
    let (line, column) = (at.line as usize, at.column as usize);
    let written = |number: usize, line: &str| {
        if number != at.line as usize - 1 {
            return line.to_owned();
        }
        let letters: Vec<char> = line.chars().collect();
        let (before, after) = (&letters[..column - 1], &letters[column - 1 + at.length as usize..]);
        format!("{}{}{}", String::from_iter(before), json!(value), String::from_iter(after))
    };
    assert!(line > 0);
    text.lines().enumerate().map(|(number, line)| written(number, line) + "\n").collect()
}

/// What the schema may be asked about: the text, and the number or truth value that it is.
fn as_json(text: &str) -> Vec<Value> {
    let parsed = serde_json::from_str::<Value>(text).ok().filter(|value| value.is_number() || value.is_boolean());
    // A number in another spelling is another text.
    let same = parsed.filter(|value| {
        let written = value.to_string();
        written == text && !text.contains('-')
    });
    same.into_iter().chain([json!(text)]).collect()
}

/// Separated by commas, as everything below.
const NUMBERS: &str = "0,1,2,20,32,33,60,61,64,100,101,128,129,200,204,304,365,366,399,400,401,429,599,600,777,1000,1001,\
    1023,1024,1025,3600,3601,10000,10001,36500,36501,65536,1000000,1000001,1048576,1048577,67108864,67108865,3600000,3600001,\
    1000000000,1000000001,4294967295,4294967296,18446744073709551615,18446744073709551616";

const UNITS: &str = ",,,ms,s,m,h,d,B,KiB,MiB,GiB,TiB,KB,kb,min,S,%,.,.5,e3,/minute,/MINUTES, per 3 minutes,per5s,per0s, period,\
    /s; 5/m,/day|6/month|7/y,/36501d,/ 36500 days,/ms,/";

const SIGNS: &str = ",,,0,0o,-,+, ,.";

const BLANKS: &str = ",, ,\t,\u{a0},\n";

const ENDS: &str = ",,, ,x,\u{a0}";

const WORDS: &str = "true,True,TRUE,tRUE,false,False,FALSE,yes,off,on,auto,none,local,full,deny,,$${x},a$${,0x10,1_000,0.5,1.0,\
    1.1,00.5,rw-rw-rw-,0660,660,066,0680";

fn one_of(texts: &'static str) -> impl Strategy<Value = &'static str> {
    select(texts.split(',').collect::<Vec<_>>())
}

/// Values, and what is near them.
fn near() -> impl Strategy<Value = String> {
    let parts = (one_of(SIGNS), one_of(NUMBERS), one_of(BLANKS), one_of(UNITS), one_of(ENDS));
    prop_oneof![
        4 => parts.prop_map(|(sign, number, blank, unit, end)| format!("{sign}{number}{blank}{unit}{end}")),
        1 => one_of(WORDS).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, rng_seed: RngSeed::Fixed(34), ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_refused_by_both_or_by_none(place in any::<Index>(), value in near()) {
        let schema = schema();
        let text = fs::read_to_string(everything::FILE).expect("the file");
        let mut found = Vec::new();
        values(&everything::tree(&text), &schema, &schema, &mut found);
        let (at, described) = *place.get(&found);
        let loaded = read(Path::new(everything::FILE), replaced(&text, at, &value), &|_| None);
        let mistakes = loaded.err().unwrap_or_default();
        let here = mistakes.into_iter().filter(|mistake| (mistake.line, mistake.column) == (at.line as usize, at.column as usize));
        let told: Vec<String> = here.map(|mistake| mistake.message).collect();
        let only_related = !told.is_empty() && told.iter().all(|told| RELATIONS.iter().any(|relation| told.contains(relation)));
        for form in as_json(&value) {
            let refused = json_schema::mistakes(&schema, described, &form);
            prop_assert_eq!(
                !refused.is_empty(),
                !told.is_empty() && !only_related,
                "{:?} at {}:{}: check says {:?}, the schema {:?}", form, at.line, at.column, told, refused
            );
        }
    }
}

#[test]
fn what_they_once_disagreed_about_is_refused_by_both_or_by_none() {
    let schema = schema();
    for (section, key, value, is_valid) in [
        ("KnownClients", "for", json!("1h "), true),
        ("KnownClients", "for", json!(0), false),
        ("KnownClients", "for", json!("401d"), false),
        ("Server", "max_body", json!("1KB"), false),
        ("Server", "max_body", json!("64kb"), false),
        ("Server", "max_body", json!(-1), false),
        ("Server", "max_body", json!("64"), true),
        ("Redis", "wait", json!(100), true),
        ("Redis", "wait", json!(101), false),
        ("Log", "query", json!("True"), true),
        ("Limit", "rate", json!("10/minute; 1/S"), true),
        ("Limit", "rate", json!("10 period"), false),
        ("Limit", "rate", json!("${RATE}"), true),
        ("Limit", "rate", json!("$${RATE}"), false),
    ] {
        let found = json_schema::mistakes(&schema, &schema["$defs"][section]["properties"][key], &value);
        assert_eq!(found.is_empty(), is_valid, "{section}.{key}: {value}: {found:?}");
    }
}
