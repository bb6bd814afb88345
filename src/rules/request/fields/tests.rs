use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::wire::head::KnownName;

const FORM: &str = "application/x-www-form-urlencoded";

const PARTS: &str = "multipart/form-data; boundary=b";

const JSON: &str = "application/json";

const BOUND: usize = 64 * 1024;

fn labelled(kinds: &[&str]) -> Fields {
    kinds.iter().map(|kind| (KnownName::CONTENT_TYPE, kind)).collect()
}

fn encoded(kind: &str, coding: &str) -> Fields {
    Fields::from_iter([(KnownName::CONTENT_TYPE, kind), (KnownName::CONTENT_ENCODING, coding)])
}

fn read(kind: &str, body: &[u8]) -> BodyFields {
    BodyFields::read(&labelled(&[kind]), &Bytes::copy_from_slice(body), true, BOUND)
}

fn param(fields: &BodyFields) -> Vec<String> {
    fields.form("username").chain(fields.json("username")).map(Cow::into_owned).collect()
}

/// Whether the values found are surely all.
fn is_understood(fields: &BodyFields) -> bool {
    fields.judge_form("username").and(fields.judge_json("username")).and(fields.judge_element("username")).is_ok()
}

#[track_caller]
fn check(kind: &str, body: &str, expected: &[&str], understood: bool) {
    let fields = read(kind, body.as_bytes());
    assert_eq!(param(&fields), expected, "{kind}: {body}");
    assert_eq!(is_understood(&fields), understood, "{kind}: {body}");
}

fn parts(value: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\n{value}\r\n--b--\r\n")
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).and_then(|()| encoder.finish()).expect("writing to memory")
}

#[test]
fn a_body_in_its_declared_format_is_read_only_in_that() {
    check(FORM, "username=alice&password=x", &["alice"], true);
    check(PARTS, &parts("alice"), &["alice"], true);
    check(JSON, r#"{"username":"alice"}"#, &["alice"], true);
    check(JSON, r#"{"note":"&username=x&","username":"alice"}"#, &["alice"], true);
    check(PARTS, &parts("alice&username=x"), &["alice&username=x"], true);
}

#[test]
fn relabelling_a_body_hides_nothing() {
    for kind in [FORM, PARTS, JSON, "text/plain", "application/xml", "", "nonsense", "multipart/form-data"] {
        for body in ["username=alice".to_owned(), parts("alice"), r#"{"username":"alice"}"#.to_owned()] {
            let found = param(&read(kind, body.as_bytes()));
            assert!(found.iter().any(|value| value == "alice"), "{kind}: {body} yields {found:?}");
        }
    }
    for body in ["username=alice".to_owned(), parts("alice"), r#"{"username":"alice"}"#.to_owned()] {
        assert_eq!(
            param(&BodyFields::read(&Fields::default(), &body.clone().into(), true, BOUND)),
            ["alice"],
            "{body}"
        );
    }
}

#[test]
fn a_body_with_one_possible_format_is_understood_under_other_types() {
    for kind in [FORM, JSON, "application/xml", "application/octet-stream", "text/plain;charset=UTF-8"] {
        check(kind, "username=alice&password=x%26y", &["alice"], true);
        assert!(is_understood(&read(kind, br#"{"username":"alice"}"#)), "{kind}");
    }
    for body in ["username=alice".to_owned(), parts("alice"), r#"{"username":"alice"}"#.to_owned()] {
        assert!(!is_understood(&read("nonsense", body.as_bytes())), "{body}");
    }
}

#[test]
fn a_body_made_to_look_like_another_is_read_as_both_and_not_understood() {
    check(JSON, "{=1&username=alice", &["alice"], false);
    check(FORM, "{=1&username=alice", &["alice"], false);
    check(FORM, r#"{"a":"&username=form&","username":"json"}"#, &["form", "json"], false);
    check("text/plain", r#"{"a":"&username=form&","username":"json"}"#, &["form", "json"], false);
    check(FORM, &parts("alice&username=bob&"), &["bob", "alice&username=bob&"], false);
    check(PARTS, &format!("x=1&username=bob&{}", parts("alice")), &["bob", "alice"], false);
}

#[test]
fn json_that_does_not_begin_as_json_is_read_and_not_understood() {
    for kind in [JSON, FORM, "text/plain", "application/octet-stream", ""] {
        for before in ["// x\n", "/* x */", "# x\n", ")]}'\n", "x", "\u{c}"] {
            check(kind, &format!("{before}{{\"username\":\"alice\"}}"), &["alice"], false);
        }
    }
}

#[test]
fn a_body_that_declares_xml_and_is_xml_is_read_only_as_xml() {
    check("application/xml", "<username>alice</username><!--&username=decoy&-->", &[], true);
    check("text/plain", "<username>alice</username><!--&username=decoy&-->", &["decoy"], false);
    let element = |kind: &'static str, text: &'static str| {
        let fields = BodyFields::read(&labelled(&[kind]), &Bytes::from_static(text.as_bytes()), true, BOUND);
        fields.element("username").collect::<Vec<_>>().concat()
    };
    assert_eq!(element("text/plain", " <username>alice</username>"), "alice");
    assert_eq!(element("text/xml", "<a><username>alice"), "alice");
}

#[test]
fn a_body_of_an_unknown_kind_is_not_understood() {
    check("application/msgpack", "\u{82}\u{a8}username\u{a5}alice", &[], false);
    check("application/xml", "<username>alice<!--&username=decoy&-->", &["decoy"], false);
    check(JSON, "not json", &[], false);
    check(PARTS, "no parts", &[], false);
    check(PARTS, "--b--\r\n", &[], true);
    check("text/plain", "some text", &[], true);
}

#[test]
fn a_decoy_sent_often_hides_no_field() {
    for times in [1, 63, 64, 65, 200] {
        let json = format!("{{{}\"username\":\"alice\"}}", r#""username":"decoy","#.repeat(times));
        let multipart = parts("decoy").replace("--b--\r\n", "").repeat(times) + &parts("alice");
        let form = "username=decoy&".repeat(times) + "username=alice";
        for (kind, body) in [(JSON, json), (PARTS, multipart), (FORM, form)] {
            let found = param(&read(kind, body.as_bytes()));
            assert!(found.iter().any(|value| value == "alice"), "{kind}, {times}");
        }
        let xml = format!("<a>{}<username>alice</username></a>", "<username>decoy</username>".repeat(times));
        // What stands there more than once comes twice.
        let expected = ["decoy", "alice", "decoy"];
        let fields = read("text/xml", xml.as_bytes());
        assert_eq!(
            fields.element("username").collect::<Vec<_>>(),
            expected[..if times == 1 { 2 } else { 3 }],
            "{times}"
        );
        // Decoys that differ before they are normalised.
        let decoys = |one: fn(usize) -> String| (0..times).map(one).collect::<String>();
        let json =
            format!("{{{}\"username\":\"alice\"}}", decoys(|i| format!(r#""username":"decoy{}","#, " ".repeat(i))));
        let multipart =
            decoys(|i| parts(&format!("decoy{}", " ".repeat(i))).replace("--b--\r\n", "")) + &parts("alice");
        for (kind, body) in [(JSON, json), (PARTS, multipart)] {
            let fields = read(kind, body.as_bytes());
            assert!(!is_understood(&fields) || param(&fields).iter().any(|value| value == "alice"), "{kind}, {times}");
        }
    }
}

#[test]
fn a_character_set_that_is_not_read_here_is_not_understood() {
    check("application/x-www-form-urlencoded; charset=ibm037", "username=decoy", &["decoy"], false);
    check(FORM, "username=alice&_charset_=utf-8", &["alice"], true);
    check(FORM, "_charset_=ibm037&username=alice", &["alice"], false);
    check(FORM, "%5Fcharset%5F=utf-16&username=alice", &["alice"], false);
    check("application/json; charset=utf-8", r#"{"username":"alice"}"#, &["alice"], true);
}

#[test]
fn several_types_are_all_tried_and_not_understood() {
    let fields = BodyFields::read(&labelled(&[JSON, FORM]), &Bytes::from_static(b"username=alice"), true, BOUND);
    assert_eq!((param(&fields), is_understood(&fields)), (vec!["alice".to_owned()], false));
}

#[test]
fn json_in_other_encodings_is_read() {
    let text = r#"{"username":"alicé"}"#;
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let wide: Vec<u8> = text.chars().flat_map(|char| u32::from(char).to_be_bytes()).collect();
    let marked = [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat();
    for (body, understood) in [(little, false), (big, false), (wide, false), (marked, true)] {
        let fields = read(JSON, &body);
        assert!(fields.json("username").any(|value| value == "alicé"), "{body:?}");
        assert_eq!(is_understood(&fields), understood, "{body:?}");
    }
}

#[test]
fn a_body_read_in_part_is_not_understood() {
    let fields = BodyFields::read(&labelled(&[FORM]), &Bytes::from_static(b"username=alice&pass"), false, BOUND);
    assert_eq!((param(&fields), is_understood(&fields)), (vec!["alice".to_owned()], false));
    let fields =
        BodyFields::read(&labelled(&[JSON]), &Bytes::from_static(br#"{"username":"alice","x":"y"#), false, BOUND);
    assert_eq!((param(&fields), is_understood(&fields)), (vec!["alice".to_owned()], false));
}

#[test]
fn an_empty_body_is_whole_whatever_it_says() {
    assert_eq!(read("application/xml", b"").not_understood(), None);
    let unseen = BodyFields::read(&labelled(&[FORM]), &Bytes::new(), false, BOUND);
    assert_eq!(unseen.not_understood(), Some(NotUnderstood::Unseen));
    assert_eq!(BodyFields::none().not_understood(), None);
}

#[test]
fn a_compressed_body_is_read() {
    for body in ["username=alice".to_owned(), parts("alice"), r#"{"username":"alice"}"#.to_owned()] {
        for label in [Some("gzip"), None] {
            let kind = if body.starts_with('{') {
                JSON
            } else if body.starts_with('-') {
                PARTS
            } else {
                FORM
            };
            let head = label.map_or_else(|| labelled(&[kind]), |label| encoded(kind, label));
            let fields = BodyFields::read(&head, &gzip(body.as_bytes()).into(), true, BOUND);
            assert_eq!(param(&fields), ["alice"], "{label:?}: {body}");
            assert!(is_understood(&fields) || label.is_none(), "{body}");
        }
    }
}

#[test]
fn a_lie_about_compression_hides_nothing() {
    for coding in ["gzip", "deflate", "br", "zstd", "unheard-of"] {
        let fields = BodyFields::read(&encoded(FORM, coding), &Bytes::from_static(b"username=alice"), true, BOUND);
        assert_eq!((param(&fields), is_understood(&fields)), (vec!["alice".to_owned()], false), "{coding}");
    }
}

#[test]
fn a_bomb_is_not_seen_whole() {
    let body = gzip(&b"username=alice&".repeat(100_000)).into();
    let fields = BodyFields::read(&encoded(FORM, "gzip"), &body, true, 1000);
    assert_eq!(fields.not_understood(), Some(NotUnderstood::Coding));
    assert!(fields.texts.iter().map(|text| text.bytes.len()).sum::<usize>() < 20_000);
}

#[test]
fn what_is_shown_of_fields_holds_no_value() {
    let shown = format!("{:?}", read(FORM, b"username=alice&password=secret"));
    assert!(!shown.contains("secret") && !shown.contains("alice"), "{shown}");
}

proptest! {
    #[test]
    fn any_body_is_read(
        kind in prop::sample::select(vec![FORM, PARTS, JSON, "text/plain", ""]),
        coding in prop::sample::select(vec!["", "gzip", "deflate", "br", "zstd", "deflate,gzip"]),
        body in proptest::collection::vec(any::<u8>(), 0..300),
        whole in any::<bool>(),
    ) {
        let fields = BodyFields::read(&encoded(kind, coding), &body.into(), whole, 1000);
        let _ = param(&fields);
        prop_assert!(whole || !is_understood(&fields));
    }

    #[test]
    fn whatever_the_label_a_form_is_read(
        kind in "(application/|multipart/|json|form-data|;|boundary=|charset=|\"|[a-z])*",
        value in "[a-z]{1,8}",
    ) {
        let body = format!("username={value}&x=y");
        prop_assert!(param(&read(&kind, body.as_bytes())).contains(&value));
    }
}
