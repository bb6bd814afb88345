use proptest::prelude::*;

use crate::wire::http1::server::*;

const LIMITS: HeadLimits = HeadLimits { bytes: 16 * 1024, fields: 8 };

fn parse_text(head: &str) -> Result<ParsedRequest, StatusCode> {
    Ok(parse(head.as_bytes(), LIMITS)?.expect("a whole head"))
}

#[track_caller]
fn framed(lines: &str) -> RequestFraming {
    parse_text(&format!("POST / HTTP/1.1\r\n{lines}\r\n")).unwrap().framing
}

#[track_caller]
fn refused(head: &str, status: u16) {
    assert_eq!(parse_text(head).map(|_| ()).map_err(|refused| refused.as_u16()), Err(status), "{head:?}");
}

#[test]
fn a_head_is_read_with_its_fields_in_order() {
    let head = parse_text("\r\nPUT /a?b HTTP/1.1\r\nHost: a\r\nX: \t1 \r\nx:2\r\n\r\n").unwrap().head;
    assert_eq!((&head.method, head.path(), head.query()), (&Method::PUT, "/a", Some("b")));
    let fields: Vec<_> = head.fields.iter().map(|field| (field.name.as_str(), field.value)).collect();
    assert_eq!(fields, [("host", &b"a"[..]), ("x", b"1"), ("x", b"2")]);
}

#[test]
fn a_body_has_one_length() {
    assert_eq!(framed("").body, BodyLength::Known(0));
    assert_eq!(framed("Content-Length: 012\r\n").body, BodyLength::Known(12));
    assert_eq!(framed("Transfer-Encoding: gzip, Chunked\r\n").body, BodyLength::Chunked);
    for lines in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1\r\nContent-Length: x\r\n",
        "Content-Length: x\r\nContent-Length: x\r\n",
        "Content-Length: 1, 1\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: \r\n",
    ] {
        refused(&format!("POST / HTTP/1.1\r\n{lines}\r\n"), 400);
    }
    refused("POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n", 431);
    refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
}

#[test]
fn invalid_heads_are_refused() {
    for line in [
        "GET",
        "GET /",
        "GET / HTTP/1.10",
        "GET / HTTP/1.2 ",
        "HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.1 ",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / x HTTP/1.1",
        "GET\t/ HTTP/1.1",
        " GET / HTTP/1.1",
        "G(T / HTTP/1.1",
        " / HTTP/1.1",
        "GET /#\x01 HTTP/1.1",
        "GET /# x HTTP/1.1",
        "GET /\n HTTP/1.1",
        "GET / HTTP/1.1\r",
        "GET / HTTP/1.1\n",
        "GET / HTTP/1.1\nHost: a",
    ] {
        refused(&format!("{line}\r\n\r\n"), 400);
    }
    for field in [
        "X y: z",
        "X : y",
        ": y",
        "X",
        " X: y",
        "\tX: y",
        "X: y\r",
        "X: y\rz",
        "X: y\nz",
        "X: \x0cy",
        "X: y\x0c",
        "X: \x0b",
        "X: \0",
        "X: \x7f",
        "X\n: y",
        "X: y\r\n z",
        "X: y\n",
    ] {
        refused(&format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"), 400);
    }
    refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(9)), 431);
    refused(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(17_000)), 431);
    refused(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000)), 414);
    assert!(parse_text(&format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(8))).is_ok());
}

/// This head is refused before it is complete.
#[track_caller]
fn begins_wrongly(head: &str, status: u16) {
    let parsed = parse(head.as_bytes(), LIMITS);
    assert_eq!(parsed.map(|_| ()).map_err(|refused| refused.as_u16()), Err(status), "{head:?}");
}

#[test]
fn a_head_with_a_wrong_beginning_is_refused_before_its_end() {
    begins_wrongly("\x16\x03\x01", 400);
    begins_wrongly("\n", 400);
    begins_wrongly("GET /\r\n", 400);
    begins_wrongly("GET / HTTP/1.1\r\nX y\r\n", 400);
    begins_wrongly(&format!("GET / HTTP/1.1\r\n{}", "X: y\r\n".repeat(9)), 431);
}

#[test]
fn a_head_ends_and_the_bytes_behind_it_are_left() {
    const HEAD: &str = "\r\nGET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n";
    for end in 0..HEAD.len() {
        let parsed = parse(&HEAD.as_bytes()[..end], LIMITS);
        assert!(matches!(parsed, Ok(None)), "{end}");
    }
    for behind in ["", "\n", "\r\n", "GET", "\0"] {
        let parsed = parse(format!("{HEAD}{behind}").as_bytes(), LIMITS);
        assert_eq!(parsed.unwrap().unwrap().length, HEAD.len());
    }
}

proptest! {
    #[test]
    fn every_head_that_is_accepted_follows_the_grammar(
        lines in prop::collection::vec("(GET|POST|/|[*]| |HTTP/1.1|HTTP/1.0|Host|X|:|a|\t|\r|\n|\u{e9}|\0){0,8}", 0..4),
    ) {
        let text = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"));
        let Ok(Some(ParsedRequest { head, length, .. })) = parse(text.as_bytes(), LIMITS) else { return Ok(()) };
        let (whole, _) = text.split_at(length);
        let lines: Vec<&str> = whole.strip_suffix("\r\n\r\n").unwrap().split("\r\n").skip(1).collect();
        prop_assert_eq!(head.fields.len(), lines.len());
        for (line, field) in lines.iter().zip(head.fields.iter()) {
            prop_assert!(!line.contains(['\r', '\n', '\0']) && !line.starts_with([' ', '\t']), "{}", line);
            let (before, behind) = line.split_once(':').unwrap();
            prop_assert_eq!(before.to_ascii_lowercase(), field.name.as_str());
            prop_assert_eq!(behind.trim_matches([' ', '\t']).as_bytes(), field.value);
        }
    }
}
