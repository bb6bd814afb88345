//! What is refused unless `server.accept` names it.

use crate::support::{Gateway, Origin};

const ACCEPT: &str = "server: {accept: [bare_lf, utf8_target]}\nlimits: [{name: of-the-path, key: path, rate: 1/hour}]";

/// The status that the request gets.
fn status(gateway: &Gateway, request: impl AsRef<[u8]>) -> u16 {
    let mut client = gateway.connect();
    client.send(request);
    client.response().status
}

#[test]
fn lines_without_cr_are_refused_unless_they_are_accepted() {
    let origin = Origin::start();
    let (strict, lenient) = (
        Gateway::start(format!("upstream: {}", origin.url())),
        Gateway::start(format!("upstream: {}\nserver: {{accept: bare_lf}}", origin.url())),
    );
    let accepted = [
        "POST / HTTP/1.1\nHost: a\nContent-Length: 2\n\nok",
        "POST / HTTP/1.1\r\nHost: a\nContent-Length: 2\r\n\r\nok",
        "POST / HTTP/1.1\nHost: a\r\nContent-Length: 2\r\n\nok",
        "\n\nPOST / HTTP/1.1\nHost: a\nContent-Length: 2\n\r\nok",
    ];
    for request in accepted {
        assert_eq!(status(&strict, request), 400, "{request:?}");
        assert_eq!(status(&lenient, request), 200, "{request:?}");
        let received = origin.last();
        assert_eq!(received.body, b"ok");
        assert_eq!(received.head.matches('\n').count(), received.head.matches("\r\n").count());
    }
    // In pieces, and one behind the other.
    let mut client = lenient.connect();
    for piece in ["GET /a HTTP/1.1\nHo", "st: a\n", "\nGET /b HTTP/1.1\nHost: a\n", "\n"] {
        client.send(piece);
    }
    assert_eq!([client.response().status, client.response().status], [200, 200]);
    for refused in [
        "GET / HTTP/1.1\nHost: a\rX: y\n\n",
        "GET / HTTP/1.1\nHost: a\n X: y\n\n",
        "GET / HTTP/1.1\nHost: a\r\r\n\r\n",
        "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n2\nok\n0\n\n",
        "POST / HTTP/1.1\nHost: a\nContent-Length: 2\nTransfer-Encoding: x\n\nok",
    ] {
        assert_eq!(status(&lenient, refused), 400, "{refused:?}");
    }
}

#[test]
fn letters_beyond_ascii_in_a_target_are_refused_unless_they_are_accepted() {
    let origin = Origin::start();
    let strict = Gateway::start(format!("upstream: {}", origin.url()));
    let lenient = Gateway::start(format!("upstream: {}\n{ACCEPT}", origin.url()));
    let request = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&strict, request("/caf\u{e9}?q=\u{20ac}")), 400);
    assert_eq!(status(&lenient, request("/caf\u{e9}?q=\u{20ac}")), 200);
    assert_eq!(origin.last().target, "/caf%C3%A9?q=%E2%82%AC");
    // However it is spelled, it is one path.
    assert_eq!(status(&lenient, request("/caf%c3%a9")), 429);
    assert_eq!(status(&lenient, request("http://a/caf\u{e9}?r=s")), 429);
    assert_eq!(status(&lenient, b"GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}
