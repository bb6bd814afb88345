//! Inputs in which readers once read a name that was not charged, each made as small as it goes.

use crate::case::Case;
use crate::charged;
use crate::generate::KINDS;

#[test]
fn what_was_once_read_past_the_gateway_is_charged() {
    let mut failures = Vec::new();
    for (name, kind, case) in cases() {
        let kind = KINDS.iter().find(|known| known.name == kind).expect("a kind");
        let selectors = kind.selectors();
        if charged::at_stake(&case, &selectors) {
            failures.push(format!("{name}: {selectors:?} charge {:?}\n{case}", charged::values(&case, &selectors)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Each with its kind.
fn cases() -> Vec<(&'static str, &'static str, Case)> {
    let case = |line: (&'static str, &str), body: Vec<u8>| Case {
        query: Vec::new(),
        lines: vec![(line.0, line.1.as_bytes().to_vec())],
        body,
        tricks: Vec::new(),
    };
    let form = |body: &str| case(("Content-Type", "application/x-www-form-urlencoded"), body.into());
    let parts = |body: &[u8]| case(("Content-Type", "multipart/form-data; boundary=b"), body.to_vec());
    let json = |body: Vec<u8>| case(("Content-Type", "application/json"), body);
    let cookie = |line| case(("Cookie", line), Vec::new());
    let basic = |line| case(("Authorization", line), Vec::new());
    let query = |query: &str| Case { query: query.into(), ..form("") };

    let bob = "\"username\":\"bob\",".repeat(64);
    let bobs = "--b\r\nContent-Disposition: form-data; name=\"USERNAME\"\r\n\r\nbob\r\n".repeat(64);
    let alice = "--b\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n--b--\r\n";
    vec![
        ("a decoy sent 64 times", "json", json(format!("{{{bob}\"username\":\"alice\"}}").into())),
        ("a decoy in another case", "json", json(format!("{{{}\"username\":\"alice\"}}", bob.to_uppercase()).into())),
        ("a bracket that begins a name", "form", form("username=bob&][username=alice")),
        ("a question mark that is dropped", "form", form("?username=alice&username=bob")),
        ("an equals sign in brackets", "form", form("username[=]=alice")),
        ("a bracket that begins a name", "query", query("?username=bob&][username=alice")),
        ("a decoy sent 64 times", "multipart", parts(format!("{bobs}{alice}").as_bytes())),
        (
            "a control character behind `name`",
            "multipart",
            parts(b"--b\r\nContent-Disposition: form-data; name\x1f=\"username\"\r\n\r\nalice\r\n--b--\r\n"),
        ),
        (
            "a blank before `name` that is no space",
            "multipart",
            parts(b"--b\r\nContent-Disposition: form-data;\xc2\xa0name=\"username\"\r\n\r\nalice\r\n--b--\r\n"),
        ),
        (
            "a line of one NUL",
            "multipart",
            parts(b"--b\nContent-Disposition: form-data; name=\"username\"\n\0\nalice\n--b\r\r\nx"),
        ),
        (
            "lines that end with LF alone",
            "multipart",
            parts(b"--b\r\nContent-Disposition: form-data; name=\"username\"\n\nalice\n-b--\r\n"),
        ),
        (
            "a header on the line of the delimiter",
            "multipart",
            parts(b"--Content-Disposition name=username\r\n\r\nbob\r\n--bContent-Disposition:; name\x1f=\"username\"\r\n\r\nalice\r"),
        ),
        (
            "base64 that goes on behind its padding",
            "multipart",
            parts(
                b"--b\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Transfer-Encoding: base64\r\n\r\nYWxpY2U=xp\r\n--b--\r\n",
            ),
        ),
        (
            "quoted-printable that ends in a soft line break",
            "multipart",
            parts(
                b"--b\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=61lice=\r\n--b--\r\n",
            ),
        ),
        (
            "a name that is encoded as in mail",
            "multipart",
            parts(
                b"--b\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nbob\r\n\
                  --b\r\nContent-Disposition: form-data; name=\"=?utf-8?Q?=75sername?=\"\r\n\r\nalice\r\n--b--\r\n",
            ),
        ),
        ("a blank in a cookie", "cookie", cookie("sid=y sid=alice")),
        ("a tab in a cookie", "cookie", cookie("sid=b\tsid=alice")),
        ("a comma between cookies", "cookie", cookie("sid=bob,sid=alice")),
        ("a comma behind a cookie", "cookie", cookie("sid=\"alice\",")),
        ("text behind a quoted cookie", "cookie", cookie("sid=\"alice\"x")),
        ("a quote that is not closed", "cookie", cookie("sid=\"alice%")),
        ("a blank in another cookie", "cookie", cookie("sid=bob; x=y sid=alice")),
        ("a blank that is trimmed", "query", query("?username=+alice")),
        ("a hyphen that is skipped", "basic", basic("Basic YWxpY2-U6")),
        ("an underscore that is skipped", "basic", basic("Basic _YWxpY2U6c2VjcmV0")),
        ("an underscore at the end", "basic", basic("Basic YWxpY2U_6")),
    ]
}
