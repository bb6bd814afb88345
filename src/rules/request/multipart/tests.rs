use proptest::prelude::*;

use super::values;
use crate::rules::request::multipart::PartReadings;

/// A part with these headers and this value, between two boundaries `b`.
fn part(headers: &str, value: &str) -> String {
    format!("--b\r\n{headers}\r\n\r\n{value}\r\n--b--\r\n")
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let boundaries = [b"b".to_vec()];
    assert_eq!(values(text.as_bytes(), &boundaries, "username"), expected, "{text:?}");
}

#[track_caller]
fn check_headers(headers: &str) {
    let text = part(headers, "alice");
    let boundaries = [b"b".to_vec()];
    let found = values(text.as_bytes(), &boundaries, "username");
    assert!(found.iter().any(|value| value == "alice"), "{headers:?} yields {found:?}");
}

const NAME: &str = "Content-Disposition: form-data; name=\"username\"";

#[test]
fn fields_of_an_ordinary_body_are_found() {
    let text = "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nx\r\n--b\r\n\
        Content-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n--b\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n\0\x01--\r\n--b--\r\n";
    check(text, &["alice"]);
    assert_eq!(values(text.as_bytes(), &[], "username"), ["alice"]);
    assert_eq!(values(text.as_bytes(), &[b"other".to_vec()], "username"), ["alice"]);
}

#[test]
fn repeated_fields_yield_every_value() {
    check(&(part(NAME, "alice") + &part(NAME, "bob")), &["alice", "bob"]);
}

#[test]
fn a_field_is_found_under_every_spelling_of_its_headers() {
    check_headers(NAME);
    check_headers("content-disposition: form-data; name=username");
    check_headers("CONTENT-DISPOSITION:form-data;NAME=username");
    check_headers("Content-Disposition : form-data ; name = \"username\"");
    check_headers("Content-Disposition: form-data;\r\n name=\"username\"");
    check_headers("Content-Disposition:\r\n\tform-data;\r\n\tname=\"username\"");
    check_headers("X-Other: y\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Type: text/plain");
    check_headers("Content-Disposition: form-data; name=\"username\"; filename=\"x\"");
    check_headers("Content-Disposition: form-data; filename=\"x\\\"; name=\"username\"");
    check_headers("Content-Disposition: form-data; filename=\"x;\"; name='username'");
    check_headers("Content-Disposition: form-data; name=\"other\"; name=\"username\"");
    check_headers("Content-Disposition: form-data; name=\"username\"; name=\"other\"");
    check_headers(
        "Content-Disposition: form-data; name=\"other\"\r\nContent-Disposition: form-data; name=\"username\"",
    );
    check_headers("Content-Disposition: form-data; name=\"user\\name\"");
    check_headers("Content-Disposition: form-data; name=\"\\u\\s\\e\\rname\"");
    check_headers("Content-Disposition: form-data; name=\"user%6eame\"");
    check_headers("Content-Disposition: form-data; name*=utf-8''user%6eame");
    check_headers("Content-Disposition: form-data; name*=\"utf-8''username\"");
    check_headers("Content-Disposition: form-data; name=\" Username\"");
    check_headers("Content-Disposition: form-data; name=\"username[]\"");
    check_headers("Content-Disposition: form-data; name=username, x");
    check_headers("Content-Disposition: form-data; name=username x");
    check_headers("Content-Disposition: attachment; name=\"username\"");
    check_headers("Content-Disposition: name=\"username\"");
    check_headers("Content-ID: username");
    check_headers("Content-Disposition: form-data\r\ncontent-id:username");
}

#[test]
fn a_file_name_is_no_name() {
    check(&part("Content-Disposition: form-data; name=\"x\"; filename=username", "alice"), &[]);
}

#[test]
fn lines_end_in_every_way() {
    check(&part(NAME, "alice").replace("\r\n", "\n"), &["alice"]);
    check(&part(NAME, "alice").replace("\r\n", "\r"), &["alice"]);
    // To a strict reader the headers end later.
    let text = part("Content-Disposition: form-data; name=\"username\"; x=\"\n\ndecoy\"", "alice");
    check(&text, &["decoy\"\r\n\r\nalice", "alice"]);
    // To one who trims lines they end earlier.
    check(&format!("--b\n{NAME}\n \nalice\n--b--"), &["alice"]);
    check(&format!("--b\n{NAME}\n \nX: decoy\n\nalice\n--b--"), &["X: decoy\n\nalice", "alice"]);
    check(&format!("--b\n{NAME}\r\rdecoy\n\nalice\n--b--"), &["decoy\n\nalice", "alice"]);
    let text = part("Content-Disposition: form-data; x=\"\n\ndecoy\"; name=\"username\"", "alice");
    check(&text, &["alice"]);
}

#[test]
fn preambles_missing_ends_and_boundaries_within_lines_hide_nothing() {
    check(&format!("preamble\r\n{}", part(NAME, "alice")), &["alice"]);
    check(&format!("{NAME}\r\n\r\nalice"), &["alice"]);
    check(&format!("--b\r\n{NAME}\r\n\r\nalice"), &["alice"]);
    check(&format!("--b\r\n{NAME}\r\n\r\nalice--b--"), &["alice"]);
    check(
        &format!("--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nx--b\r\n{NAME}\r\n\r\nalice\r\n--b--"),
        &["alice"],
    );
    check(&format!("--decoy\r\n\r\n--b\r\n{NAME}\r\n\r\nalice\r\n--b--"), &["alice"]);
    check(&format!("--b\r\n{NAME}\r\n\r\n--b--"), &[""]);
    check(&format!("--b\r\n{NAME}\r\n\r\n\r\n--b--"), &[""]);
    check(&format!("--b\r\n{NAME}\r\n"), &[""]);
}

#[test]
fn a_value_may_hold_lines_and_dashes() {
    check(&part(NAME, "a\r\nb -- c"), &["a\r\nb -- c"]);
    check(&part(NAME, "--alice"), &["--alice"]);
}

#[test]
fn encoded_values_are_yielded_as_sent_and_decoded() {
    check(&part(&format!("{NAME}\r\nContent-Transfer-Encoding: base64"), "YWxpY2U="), &["YWxpY2U=", "alice"]);
    check(
        &part(&format!("content-transfer-encoding:BASE64\r\n{NAME}"), "YWxp\r\nY2U="),
        &["YWxp\r\nY2U=", "alice", "ali"],
    );
    check(
        &part(&format!("{NAME}\r\nContent-Transfer-Encoding: Quoted-Printable"), "al=69c=\r\ne"),
        &["al=69c=\r\ne", "alice"],
    );
    check(&part(&format!("{NAME}\r\nContent-Transfer-Encoding: 8bit"), "alice"), &["alice"]);
}

#[test]
fn equal_values_are_joined_before_they_are_counted() {
    check(&(part(NAME, "decoy").repeat(64) + &part(NAME, "alice")), &["decoy", "alice"]);
}

#[test]
fn the_value_before_a_part_says_nothing_about_it() {
    let text =
        part("Content-Disposition: form-data; name=\"text\"", "Content-Transfer-Encoding: base64 charset=koi8-r")
            + &part(NAME, "YWxpY2U=");
    check(&text, &["YWxpY2U="]);
}

#[test]
fn hostile_bodies_take_no_longer_than_others() {
    for piece in [
        "content-disposition:",
        "content-disposition:\n\n",
        "content-disposition:\n\nname=",
        "name=",
        "name=\"",
        "--",
        "\r\n--",
        "\r",
        "=?",
        "name*",
        "--b",
    ] {
        let text = format!("{NAME};{}", piece.repeat(200_000 / piece.len()));
        let boundaries = [b"b".to_vec()];
        let _ = values(text.as_bytes(), &boundaries, "username");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = values(&bytes, &[], "username");
    }

    #[test]
    fn anything_like_a_body_is_read(
        pieces in proptest::collection::vec(prop::sample::select(vec![
            "content-disposition", ":", ";", " ", "name", "=", "\"", "'", "\\", "username", "alice", "\r\n", "\n", "\r", "--b", "--", "b", "*",
            "utf-8''", "%6e", "content-transfer-encoding", "base64", "quoted-printable", "charset", "=?", "\u{e9}",
        ]), 0..40),
    ) {
        let text = pieces.concat();
        let boundaries = [b"b".to_vec()];
        let _ = values(text.as_bytes(), &boundaries, "username");
    }

    #[test]
    fn no_reading_depends_on_what_was_read_before(
        pieces in proptest::collection::vec(prop::sample::select(vec![
            "content-disposition: name=username", "content-id:x", "\r\n", "\n", "\r", " ", "--b", "--", "alice", "bob",
        ]), 0..30),
    ) {
        let text = pieces.concat();
        let whole: Vec<_> = PartReadings::new(text.as_bytes(), &[]).map(|part| part.value.to_vec()).collect();
        let mut alone = Vec::new();
        let mut at = 0;
        loop {
            let mut parts = PartReadings::new(&text.as_bytes()[at..], &[]);
            let Some(first) = parts.next() else { break };
            alone.push(first.value.to_vec());
            while let Some(part) = parts.pending.pop() {
                alone.push(part.value.to_vec());
            }
            at += parts.at;
        }
        prop_assert_eq!(whole, alone);
    }

    #[test]
    fn what_a_strict_reader_reads_is_read(value in "[a-z\r\n -]{0,12}", decoy in "[a-z\r\n;=\"-]{0,12}") {
        prop_assume!(!value.contains("--b") && !decoy.contains("--b") && !decoy.contains("\r\n\r\n") && !value.contains("\n--") && !value.contains("\r--"));
        let text = part(&format!("Content-Disposition: form-data; x={decoy}; name=\"username\""), &value);
        let boundaries = [b"b".to_vec()];
        // The value to a reader for whom only CR LF ends a line, if it finds a name at all.
        prop_assert!(values(text.as_bytes(), &boundaries, "username").iter().any(|found| *found == value)
            || decoy.ends_with("\r\n") || decoy.contains('\n') || decoy.contains('\r'));
    }
}
