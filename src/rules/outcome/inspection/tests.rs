use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;
use crate::rules::outcome::BodyPattern;
use crate::wire::head::KnownName;

const BOUND: usize = 1000;

fn pattern(text: &str) -> Matchers {
    Matchers { body: Some(BodyPattern::parse(text).expect("a pattern")), ..Matchers::default() }
}

fn json(path: &str, value: &str) -> Matchers {
    Matchers { json: vec![(path.into(), value.into())], ..Matchers::default() }
}

fn inspect(rule: &OutcomeRule, coding: Option<&str>, frames: &[&[u8]], ending: BodyEnd) -> Option<Outcome> {
    let fields = coding.map(|coding| (KnownName::CONTENT_ENCODING, coding)).into_iter().collect();
    let mut inspection =
        Inspection::begin(Arc::new(rule.clone()), None, StatusCode::OK, &fields, Timestamp::EPOCH, BOUND);
    for frame in frames {
        inspection.feed(frame);
    }
    inspection.conclude(ending).outcome
}

#[track_caller]
fn check(rule: &OutcomeRule, body: &[u8], expected: Option<Outcome>) {
    assert_eq!(inspect(rule, None, &[body], BodyEnd::Whole), expected);
    let bytes: Vec<_> = body.chunks(1).collect();
    assert_eq!(inspect(rule, None, &bytes, BodyEnd::Whole), expected, "byte by byte");
    for (coding, encoded) in [("gzip", gzip(body)), ("zstd", zstd(body))] {
        assert_eq!(inspect(rule, Some(coding), &[&encoded], BodyEnd::Whole), expected, "{coding}");
        let bytes: Vec<_> = encoded.chunks(1).collect();
        assert_eq!(inspect(rule, Some(coding), &bytes, BodyEnd::Whole), expected, "{coding}, byte by byte");
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).expect("writing to a vector does not fail");
    encoder.finish().expect("writing to a vector does not fail")
}

fn zstd(body: &[u8]) -> Vec<u8> {
    compress_to_vec(body, CompressionLevel::Fastest)
}

/// Text that no encoding makes shorter than the bound.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'0' + u8::try_from(state >> 24).expect("8 bits") % 64
    };
    (0..length).map(|_| letter()).collect()
}

#[test]
fn a_mark_in_the_page_decides_the_outcome() {
    let rule = OutcomeRule::new(None, Some(pattern("invalid password")), None);
    check(&rule, b"<p>invalid password</p>", Some(Outcome::Failure));
    check(&rule, b"<p>welcome</p>", Some(Outcome::Success));
    check(&rule, b"", Some(Outcome::Success));
}

#[test]
fn a_mark_of_success_echoed_in_a_failed_page_is_no_success() {
    let rule = OutcomeRule::new(Some(pattern("welcome")), Some(pattern("invalid password")), None);
    check(&rule, b"invalid password for welcome", Some(Outcome::Failure));
    check(&rule, b"welcome", Some(Outcome::Success));
    check(&rule, b"maintenance", Some(Outcome::Neither));
    let both = Matchers { json: vec![("ok".into(), "true".into())], ..pattern("welcome") };
    let rule = OutcomeRule::new(Some(both), None, None);
    check(&rule, br#"{"ok": false, "user": "welcome"}"#, Some(Outcome::Failure));
    check(&rule, br#"{"ok": true, "user": "welcome"}"#, Some(Outcome::Success));
}

#[test]
fn json_is_read_as_a_whole() {
    let rule = OutcomeRule::new(Some(json("ok", "true")), Some(json("ok", "false")), None);
    check(&rule, br#"{"ok": false}"#, Some(Outcome::Failure));
    check(&rule, b"\xef\xbb\xbf{\"ok\": true}", Some(Outcome::Success));
    check(&rule, br#"{"name": "\"ok\": true"}"#, Some(Outcome::Neither));
    check(&rule, b"{\"name\": \"\xff\", \"ok\": false}", Some(Outcome::Failure));
    check(&rule, b"<html>", Some(Outcome::Neither));
}

#[test]
fn only_the_first_bytes_are_read_and_a_mark_beyond_them_frees_no_client() {
    let behind = |mark: &str| [&noise(BOUND - 3)[..], mark.as_bytes()].concat();
    check(&OutcomeRule::new(Some(pattern("welcome")), None, None), &behind("welcome"), Some(Outcome::Failure));
    check(&OutcomeRule::new(None, Some(pattern("invalid")), None), &behind("invalid"), None);
    check(
        &OutcomeRule::new(None, Some(pattern("invalid")), Some(Outcome::Failure)),
        &behind("x"),
        Some(Outcome::Failure),
    );
    check(&OutcomeRule::new(None, Some(pattern("invalid")), None), &noise(BOUND), Some(Outcome::Success));
    let long = [br#"{"ok": false, "name": ""#, &noise(4 * BOUND)[..], br#""}"#].concat();
    check(&OutcomeRule::new(None, Some(json("ok", "false")), None), &long, None);
    check(&OutcomeRule::new(Some(json("ok", "true")), None, None), &long, Some(Outcome::Failure));
}

#[test]
fn a_body_that_broke_off_decides_only_by_what_was_read() {
    let rule = OutcomeRule::new(Some(pattern("welcome")), Some(pattern("invalid")), None);
    let cut = |body: &[u8]| inspect(&rule, None, &[body], BodyEnd::Cut);
    assert_eq!(cut(b"inval"), None);
    assert_eq!(cut(b"invalid"), Some(Outcome::Failure));
    assert_eq!(cut(b"welcome"), None);
    let rule = OutcomeRule::new(Some(pattern("welcome")), None, None);
    assert_eq!(inspect(&rule, None, &[b"welcome"], BodyEnd::Cut), Some(Outcome::Success));
    assert_eq!(inspect(&rule, None, &[b"wel"], BodyEnd::Cut), None);
    assert_eq!(inspect(&rule, None, &[&noise(BOUND)], BodyEnd::Cut), Some(Outcome::Failure));
}

#[test]
fn an_undecodable_body_decides_nothing() {
    let rule = OutcomeRule::new(None, Some(pattern("invalid")), None);
    assert_eq!(inspect(&rule, Some("dcb"), &[b"invalid"], BodyEnd::Whole), None);
    assert_eq!(inspect(&rule, Some("gzip"), &[b"no gzip"], BodyEnd::Whole), None);
    assert_eq!(inspect(&rule, Some("br"), &[b"\xff\xff\xff"], BodyEnd::Whole), None);
    let page = gzip(&noise(500));
    assert_eq!(inspect(&rule, Some("gzip"), &[&page[..page.len() - 9]], BodyEnd::Whole), None);
}

#[test]
fn partial_content_decides_nothing() {
    let rule = Arc::new(OutcomeRule::new(None, Some(pattern("invalid")), None));
    let mut inspection = Inspection::begin(
        Arc::clone(&rule),
        None,
        StatusCode::PARTIAL_CONTENT,
        &Fields::default(),
        Timestamp::EPOCH,
        BOUND,
    );
    inspection.feed(b"id password");
    assert_eq!(inspection.conclude(BodyEnd::Whole).outcome, None);
}

#[test]
fn little_more_than_the_bound_is_kept() {
    let rule = Arc::new(OutcomeRule::new(None, Some(pattern("invalid")), None));
    let mut inspection = Inspection::begin(rule, None, StatusCode::OK, &Fields::default(), Timestamp::EPOCH, BOUND);
    for _ in 0..100 {
        inspection.feed(&[b'x'; BOUND]);
    }
    assert!(inspection.is_full() && inspection.read.len() <= 2 * BOUND + 1024);
}

proptest! {
    #[test]
    fn frames_make_no_difference(
        body in prop::collection::vec(any::<u8>(), 0..3000),
        cuts in prop::collection::vec(0_usize..3000, 0..6),
        coding in prop::sample::select(vec![None, Some("gzip"), Some("br"), Some("zstd"), Some("deflate")]),
    ) {
        let rule = OutcomeRule::new(Some(pattern("/[a-f]/")), Some(pattern("/[0-9]{2}/")), None);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).chain([0, body.len()]).collect();
        cuts.sort_unstable();
        let frames: Vec<_> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
        let whole = inspect(&rule, coding, &[&body], BodyEnd::Whole);
        prop_assert_eq!(inspect(&rule, coding, &frames, BodyEnd::Whole), whole);
    }
}

#[test]
fn tokens_are_read_from_json_alone_and_a_body_that_broke_off_may_lack_some() {
    let rule = OutcomeRule::new(Some(Matchers { status: "200".parse().ok(), ..Matchers::default() }), None, None);
    let inspect = |body: &[u8], coding: Option<&str>, ending| {
        let fields = coding.map(|coding| (KnownName::CONTENT_ENCODING, coding)).into_iter().collect();
        let tokens: Arc<[Box<str>]> = ["access".into(), "more.refresh".into()].into();
        let mut inspection =
            Inspection::begin(Arc::new(rule.clone()), Some(tokens), StatusCode::OK, &fields, Timestamp::EPOCH, BOUND);
        inspection.feed(body);
        let Inspected { tokens, may_lack_tokens, .. } = inspection.conclude(ending);
        (tokens.join(" "), may_lack_tokens)
    };
    let both = br#"{"access": "a.b", "more": {"refresh": "c"}, "other": "d"}"#;
    assert_eq!(inspect(both, None, BodyEnd::Whole), ("a.b c".to_owned(), false));
    assert_eq!(inspect(&gzip(both), Some("gzip"), BodyEnd::Whole), ("a.b c".to_owned(), false));
    assert_eq!(inspect(br#"{"access": 17}"#, None, BodyEnd::Whole), ("17".to_owned(), false));
    for none in [&br#"{"access": ""}"#[..], br#"{"access": null}"#, br#"{"access": ["a"]}"#, b"access=a", b""] {
        assert_eq!(inspect(none, None, BodyEnd::Whole), (String::new(), false), "{}", String::from_utf8_lossy(none));
    }
    assert_eq!(inspect(&both[..20], None, BodyEnd::Cut), (String::new(), true));
    assert_eq!(inspect(b"", None, BodyEnd::Cut), (String::new(), true));
}
