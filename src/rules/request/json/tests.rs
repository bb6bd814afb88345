use proptest::prelude::*;

use super::values;
use crate::rules::request::json::MAX_VALUES;

#[track_caller]
fn check(text: &str, path: &str, expected: &[&str]) {
    assert_eq!(values(text.as_bytes(), path), expected, "{path} in {text}");
}

#[test]
fn scalars_are_found_under_their_dotted_path() {
    check(r#"{"u":"alice"}"#, "u", &["alice"]);
    check(r#"{"a":1,"u":"alice","b":2}"#, "u", &["alice"]);
    check(r#"{"a":{"b":{"c":"x"}}}"#, "a.b.c", &["x"]);
    check(r#"{"a":[{"b":1},{"b":2}]}"#, "a.1.b", &["2"]);
    check(r#"{"a":[[1,2],[3,4]]}"#, "a.1.0", &["3"]);
    check(r#"[{"u":"alice"}]"#, "0.u", &["alice"]);
    check(r#"{"a.b":1}"#, "a.b", &["1"]);
    check(r#"{"a":{"u":"inner"},"u":"outer"}"#, "u", &["outer"]);
    check(r#"{"a":[1,{"x":2}],"u":"after"}"#, "u", &["after"]);
    check(r#"{"u":"alice"}"#, "v", &[]);
    check(r#"{"U":"alice"}"#, "u", &["alice"]);
    check("{\"\u{212a}ey\":\"alice\"}", "key", &["alice"]);
}

#[test]
fn scalars_are_their_text() {
    check(r#"{"u":true,"v":false,"w":42,"x":-1.5,"y":""}"#, "u", &["true"]);
    check(r#"{"w":42}"#, "w", &["42"]);
    check(r#"{"x":-1.5}"#, "x", &["-1.5"]);
    check(r#"{"y":""}"#, "y", &[""]);
    check(r#"{"u":1e2}"#, "u", &["100", "1e2"]);
    check(r#"{"u":100.0}"#, "u", &["100", "100.0"]);
    check(r#"{"u":-0}"#, "u", &["0", "-0"]);
    check(r#"{"u":123456789012345678901234567890}"#, "u", &["123456789012345678901234567890"]);
}

#[test]
fn what_is_no_scalar_yields_the_empty_value() {
    check(r#"{"u":null}"#, "u", &[""]);
    check(r#"{"u":{"$eq":"alice"}}"#, "u", &[""]);
    check(r#"{"u":["alice"]}"#, "u", &[""]);
    check(r#"{"v":["alice"]}"#, "u", &[]);
}

#[test]
fn repeated_names_yield_every_value() {
    check(r#"{"u":"a","u":"b"}"#, "u", &["a", "b"]);
    check(r#"{"u":"a","U":"b","\u0075":"c"}"#, "u", &["a", "b", "c"]);
    check(r#"{"a":{"u":1},"a":{"u":2}}"#, "a.u", &["1", "2"]);
}

#[test]
fn an_object_beside_a_scalar_of_the_same_name_hides_nothing() {
    check(r#"{"u":"decoy","u":{"$eq":"alice"}}"#, "u", &["decoy", ""]);
    check(r#"{"u":null,"u":"alice"}"#, "u", &["alice", ""]);
}

#[test]
fn strings_are_unescaped() {
    check(r#"{"\u0075":"\u0061lice\n\t\"\\\/\b\f\r"}"#, "u", &["alice\n\t\"\\/\u{8}\u{c}\r"]);
    check(r#"{"u":"\ud83d\ude00"}"#, "u", &["😀"]);
    check(r#"{"u":"\ud83dx"}"#, "u", &["\u{fffd}x"]);
    check(r#"{"u":"a\ud83d"}"#, "u", &["a\u{fffd}"]);
    check(r#"{"u":"\u00"}"#, "u", &["\u{fffd}00"]);
    check(r#"{"u":"\x"}"#, "u", &["x"]);
    assert_eq!(values(b"{\"u\":\"a\xffb\"}", "u"), ["a\u{fffd}b"]);
}

#[test]
fn what_lenient_libraries_read_is_read() {
    check("\u{feff}{\"u\":\"alice\"}", "u", &["alice"]);
    check(" \r\n\t{ \"u\" : \"alice\" } ", "u", &["alice"]);
    check("{'u':'alice'}", "u", &["alice"]);
    check("{u:'alice'}", "u", &["alice"]);
    check("{u:alice}", "u", &["alice"]);
    check("/* {\"u\":\"decoy\"} */ {\"u\":\"alice\"}", "u", &["alice"]);
    check("{// x\n\"u\":\"alice\",}", "u", &["alice"]);
    check("{\"a\":NaN,\"u\":\"alice\"}", "u", &["alice"]);
    check("{\"a\":\"line\nbreak\",\"u\":\"alice\"}", "u", &["alice"]);
    check(r#"{"a":1}{"u":"alice"}"#, "u", &["alice"]);
    check(r#"{"a":1 "u":"alice"}"#, "u", &["alice"]);
    check(r#"{"a":[1,2},"u":"alice"}"#, "a.2", &["u"]);
}

#[test]
fn a_text_cut_short_yields_what_was_whole() {
    check(r#"{"u":"alice","v":"bo"#, "u", &["alice"]);
    check(r#"{"u":"alice","v":"bo"#, "v", &[]);
    check(r#"{"u":"alice"#, "u", &[]);
    check(r#"{"u":"alice\"#, "u", &[]);
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let path = |depth: usize| format!("a{}", ".0".repeat(depth));
    assert_eq!(values(deep(127).as_bytes(), &path(127)), ["1"]);
    assert!(values(deep(128).as_bytes(), &path(128)).is_empty());
    assert!(values("[".repeat(1_000_000).as_bytes(), "u").is_empty());
}

#[test]
fn equal_values_are_joined_before_they_are_counted() {
    let decoys = r#""u":"decoy","#.repeat(64);
    assert_eq!(values(format!("{{{decoys}\"u\":\"alice\"}}").as_bytes(), "u"), ["decoy", "alice"]);
}

#[test]
fn values_kept_are_bounded() {
    let text = format!("{{{}}}", (0..10_000).map(|i| format!(r#""u":{i}"#)).collect::<Vec<_>>().join(","));
    assert!(values(text.as_bytes(), "u").len() <= MAX_VALUES + 1);
}

proptest! {
    #[test]
    fn any_bytes_are_scanned(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = values(&bytes, "u");
    }

    #[test]
    fn anything_like_json_is_scanned(text in r#"([\[\]{}:,"' \\u0-9a-f]|null|"u"|\\ud83d|/\*|//){0,60}"#) {
        let _ = values(text.as_bytes(), "u");
    }

    #[test]
    fn what_a_strict_library_reads_is_read(name in "[a-z\u{e9}\\\\\"]{1,5}", value in ".{0,20}", number in any::<i64>()) {
        prop_assume!(!["x", "y", "z"].contains(&name.as_str()));
        let text = serde_json::json!({"x": [number, {"y": number}], &name: value.clone(), "z": null}).to_string();
        prop_assert_eq!(values(text.as_bytes(), &name), [value]);
        prop_assert_eq!(values(text.as_bytes(), "x.1.y"), [number.to_string()]);
    }
}
