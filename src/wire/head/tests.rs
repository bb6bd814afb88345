//! The table of fields, against a list that does the same plainly.

use http::Method;
use proptest::prelude::*;

use super::*;

#[test]
fn every_known_name_is_found_by_its_text_alone() {
    for known in KnownName::all() {
        assert_eq!(KnownName::of(known.as_str().as_bytes()), Some(known));
        assert_eq!(KnownName::of(known.as_str().to_uppercase().as_bytes()), None, "{known:?}");
        assert_eq!(KnownName::of(format!("{}x", known.as_str()).as_bytes()), None, "{known:?}");
        assert_eq!(known.as_str().parse::<FieldName>().unwrap().known(), Some(known));
    }
    assert_eq!(KnownName::of(b""), None);
}

#[test]
fn a_name_of_a_configuration_has_one_spelling() {
    let name: FieldName = "X-Tenant".parse().unwrap();
    assert_eq!((name.as_str(), name.known()), ("x-tenant", None));
    assert_eq!("HOST".parse::<FieldName>().unwrap(), KnownName::HOST.into());
    for invalid in ["", "a b", "a:", "\u{e9}"] {
        assert_eq!(invalid.parse::<FieldName>(), Err(InvalidFieldName), "{invalid:?}");
    }
}

#[track_caller]
fn noted(line: &str, value: std::ops::Range<usize>) -> Result<Vec<u8>, InvalidField> {
    let mut fields = Fields::on(line.as_bytes());
    let colon = line.find(':').unwrap_or(0);
    let place = value.start - colon - 1..value.end - colon - 1;
    fields.note(0, line.trim_end_matches(['\r', '\n']).len().max(value.end), line.len(), |_| place)?;
    let mut written = Vec::new();
    fields.write(&mut written);
    Ok(written)
}

#[test]
fn a_line_is_written_with_one_blank_and_a_name_in_lower_case() {
    assert_eq!(noted("Host: a\r\n", 6..7).unwrap(), b"host: a\r\n");
    assert_eq!(noted("Host:a\r\n", 5..6).unwrap(), b"host: a\r\n");
    assert_eq!(noted("X:  a \r\n", 4..5).unwrap(), b"x: a\r\n");
    assert_eq!(noted("X: a\n", 3..4).unwrap(), b"x: a\r\n");
    assert_eq!(noted("X:\ta\r\n", 3..4).unwrap(), b"x: a\r\n");
    assert_eq!(noted("X: a \n", 3..4).unwrap(), b"x: a\r\n");
    assert_eq!(noted("X:\r\n", 2..2).unwrap(), b"x: \r\n");
}

#[test]
fn names_are_tokens() {
    assert_eq!(noted("X y: a\r\n", 5..6), Err(InvalidField));
    assert_eq!(noted(": a\r\n", 2..3), Err(InvalidField));
    assert_eq!(noted("X\r\n", 2..2), Err(InvalidField));
}

#[track_caller]
fn check_target(written: &str, path: &str, query: Option<&str>, authority: Option<&str>) {
    let head = RequestHead::to(Method::GET, written).unwrap();
    assert_eq!((head.path(), head.query(), head.authority()), (path, query, authority), "{written}");
}

#[test]
fn a_target_is_a_path_and_a_query() {
    check_target("/", "/", None, None);
    check_target("/a?", "/a", Some(""), None);
    check_target("/a?b?c", "/a", Some("b?c"), None);
    check_target("/a#b?c", "/a", None, None);
    check_target("/a?b#c", "/a", Some("b"), None);
    check_target("//a/b", "//a/b", None, None);
    check_target("*", "*", None, None);
    check_target("/?q={\"a\":1}`<>", "/", Some("q={\"a\":1}`<>"), None);
    check_target("/a\"<b>`?c", "/a\"<b>`", Some("c"), None);
    check_target("http://h/a\"<b>`?<#>", "/a\"<b>`", Some("<"), Some("h"));
    check_target("http://h", "/", None, Some("h"));
    check_target("http://h?q", "/", Some("q"), Some("h"));
    check_target("http://h/a?q", "/a", Some("q"), Some("h"));
    check_target("h:80", "", None, Some("h:80"));
    for none in
        ["/a b", "*/x", "h/x", "h?x", "h#x", "h:80/x", "x/y://h/", "?x", "http://", "http://me:secret@h/a", "a@h:80"]
    {
        assert_eq!(RequestHead::to(Method::GET, none).unwrap_err(), InvalidTarget::Malformed, "{none}");
    }
    assert_eq!(RequestHead::to(Method::GET, "").unwrap_err(), InvalidTarget::Malformed);
    assert_eq!(RequestHead::to(Method::GET, &"/".repeat(70_000)).unwrap_err(), InvalidTarget::TooLong);
}

#[derive(Clone, Debug)]
enum Change {
    Append(&'static str, String),
    Insert(&'static str, String),
    Remove(&'static str),
    RemoveRepeated(KnownName),
    RemoveValue(String),
}

fn change() -> impl Strategy<Value = Change> {
    let name = || prop::sample::select(vec!["host", "cookie", "x-other", "accept", "x-more"]);
    let value = || "[a-c]{0,2}";
    prop_oneof![
        (name(), value()).prop_map(|(name, value)| Change::Append(name, value)),
        (name(), value()).prop_map(|(name, value)| Change::Insert(name, value)),
        name().prop_map(Change::Remove),
        prop::sample::select(vec![KnownName::HOST, KnownName::COOKIE]).prop_map(Change::RemoveRepeated),
        value().prop_map(Change::RemoveValue),
    ]
}

proptest! {
    #[test]
    fn the_first_colon_is_found(text in "[A-Za-z:@\\[`{~\u{0}\u{e9}]{0,30}") {
        prop_assert_eq!(field_name::position_of_colon(text.as_bytes()), text.find(':'));
    }

    #[test]
    fn a_known_name_is_found_in_any_case_and_in_no_other_spelling(
        known in 0..KnownName::COUNT,
        upper in any::<u64>(),
        place in 0..40_usize,
        other in any::<u8>(),
    ) {
        let known = KnownName::all().nth(known).unwrap();
        let lower = known.as_str().as_bytes();
        let mut name: Vec<u8> = lower.to_vec();
        for (_, byte) in name.iter_mut().enumerate().filter(|(place, _)| upper >> (place % 64) & 1 == 1) {
            *byte = byte.to_ascii_uppercase();
        }
        let mut lowered = name.clone();
        prop_assert_eq!(KnownName::in_any_case(&mut lowered), Some(known));
        prop_assert_eq!(&lowered, lower);
        if let Some(byte) = name.get_mut(place) {
            *byte = other;
            let expected = KnownName::of(&name.to_ascii_lowercase());
            let mut lowered = name.clone();
            prop_assert_eq!(KnownName::in_any_case(&mut lowered), expected);
            prop_assert!(expected.is_some() || lowered == name, "a name that is not known stays as it is");
        }
    }

    #[test]
    fn a_table_is_a_list_of_names_and_values(changes in prop::collection::vec(change(), 0..20)) {
        let mut fields = Fields::default();
        let mut model: Vec<(String, String)> = Vec::new();
        for change in changes {
            match change {
                Change::Append(name, value) => {
                    fields.append(Name::of(name), value.as_bytes());
                    model.push((name.to_owned(), value));
                }
                Change::Insert(name, value) => {
                    fields.insert(Name::of(name), value.as_bytes());
                    model.retain(|(other, _)| other != name);
                    model.push((name.to_owned(), value));
                }
                Change::Remove(name) => {
                    let had = model.iter().any(|(other, _)| other == name);
                    prop_assert_eq!(fields.remove(Name::of(name)), had);
                    model.retain(|(other, _)| other != name);
                }
                Change::RemoveRepeated(name) => {
                    fields.remove_repeated(name);
                    let mut seen = false;
                    model.retain(|(other, _)| other != name.as_str() || !std::mem::replace(&mut seen, true));
                }
                Change::RemoveValue(value) => {
                    fields.retain(|field| field.value != value.as_bytes());
                    model.retain(|(_, other)| *other != value);
                }
            }
        }
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let all: Vec<_> = fields.iter().map(|field| (field.name.as_str().to_owned(), text(field.value))).collect();
        prop_assert_eq!(&all, &model);
        prop_assert_eq!(fields.len(), model.len());
        for name in ["host", "cookie", "x-other", "absent"] {
            let named: Vec<_> = model.iter().filter(|(other, _)| other == name).map(|(_, value)| value.clone()).collect();
            prop_assert_eq!(fields.get_all(Name::of(name)).map(text).collect::<Vec<_>>(), named.clone());
            prop_assert_eq!(fields.get(Name::of(name)).map(text), named.first().cloned());
            prop_assert_eq!(fields.single(Name::of(name)).is_some(), named.len() == 1);
            if let Name::Known(known) = Name::of(name) {
                prop_assert_eq!(fields.has(known), !named.is_empty());
            }
        }
        let lines: Vec<String> = model.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut written = Vec::new();
        fields.write(&mut written);
        prop_assert_eq!(text(&written), lines.concat());
    }
}
