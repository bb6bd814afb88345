//! Fields: their syntax, names that applications confuse, and hop-by-hop fields.

use super::{Row, passes, passes_last, refused};

const PLAIN: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

fn get(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

pub(crate) fn syntax() -> Vec<Row> {
    let bytes = |value: &[u8]| [b"GET / HTTP/1.1\r\nHost: a\r\nX: ", value, b"\r\n\r\n"].concat();
    vec![
        refused("a space in a name", get("X Y: z\r\n"), 400),
        refused("a space before a colon", get("X : y\r\n"), 400),
        refused("a bracket in a name", get("X(: y\r\n"), 400),
        refused("a slash in a name", get("X/Y: y\r\n"), 400),
        refused("a name beyond ASCII", get("X\u{e9}: y\r\n"), 400),
        refused("a NUL in a name", get("X\0: y\r\n"), 400),
        refused("no name", get(": y\r\n"), 400),
        refused("no colon", get("no colon\r\n"), 400),
        refused("a folded value", get("X: y\r\n z\r\n"), 400),
        refused("a value folded with a tab", get("X: y\r\n\tz\r\n"), 400),
        refused("a NUL in a value", get("X: y\0z\r\n"), 400),
        refused("a CR in a value", get("X: y\rz\r\n"), 400),
        refused("a CR at the end of a value", get("X: y\r\r\n"), 400),
        refused("an escape character in a value", get("X: \x1b[2J\r\n"), 400),
        refused("a DEL in a value", get("X: \x7f\r\n"), 400),
        refused("a second request in a value", get("X: y\rGET /in HTTP/1.1\r\n"), 400),
        passes("a tab in a value", get("X: y\tz\r\n"), "GET / HTTP/1.1\r\nhost: a\r\nx: y\tz\r\n\r\n"),
        passes("an empty value", get("X:\r\n"), "GET / HTTP/1.1\r\nhost: a\r\nx: \r\n\r\n"),
        passes("colons in a value", get("X: :y: z:\r\n"), "GET / HTTP/1.1\r\nhost: a\r\nx: :y: z:\r\n\r\n"),
        passes(
            "every character of a name",
            get("!#$%&'*+-.^_`|~9z: y\r\n"),
            "GET / HTTP/1.1\r\n!#$%&'*+-.^_`|~9z: y\r\nhost: a\r\n\r\n",
        ),
        passes("a value beyond ASCII", bytes("\u{e9}".as_bytes()), "GET / HTTP/1.1\r\nhost: a\r\nx: \u{e9}\r\n\r\n"),
        refused("a value of 20,000 bytes", get(&format!("X: {}\r\n", "y".repeat(20_000))), 431),
        refused("a name of 20,000 bytes", get(&format!("{}: y\r\n", "x".repeat(20_000))), 431),
        refused("60 fields", get(&"X: y\r\n".repeat(60)), 431),
        refused("500 fields", get(&"X: y\r\n".repeat(500)), 431),
    ]
}

/// Each of these names is dropped.
pub(crate) fn names() -> Vec<Row> {
    let dropped = |name| passes(name, get(&format!("{name}: 6.6.6.6\r\n")), PLAIN);
    let kept = |name, arrives| passes(name, get(&format!("{name}: x\r\n")), arrives);
    let mut rows: Vec<Row> = [
        "X_Forwarded_For",
        "X-Forwarded_For",
        "x.forwarded.for",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X_Forwarded_Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Port",
        "X-Forwarded-Prefix",
        "X-Forwarded-Server",
        "X-Forwarded-Anything",
        "Forwarded",
        "X-Real-IP",
        "X_Real_IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "CloudFront-Viewer-Address",
        "Fastly-Client-IP",
        "X-Client-IP",
        "X-Cluster-Client-IP",
        "Client-IP",
        "X-Request-Id",
        "X-Original-URL",
        "X_Original_URL",
        "X-Rewrite-URL",
        "X-Forwarded-Uri",
        "X-Original-Method",
        "Proxy",
        "Content_Length",
        "Transfer_Encoding",
        "Content_Type",
    ]
    .map(dropped)
    .into();
    rows.extend([
        kept("Session_Token", "GET / HTTP/1.1\r\nhost: a\r\nsession_token: x\r\n\r\n"),
        kept("X-HTTP-Method-Override", "GET / HTTP/1.1\r\nhost: a\r\nx-http-method-override: x\r\n\r\n"),
        kept("Host_", "GET / HTTP/1.1\r\nhost: a\r\nhost_: x\r\n\r\n"),
        kept("Via", "GET / HTTP/1.1\r\nhost: a\r\nvia: x\r\n\r\n"),
    ]);
    rows
}

pub(crate) fn between_neighbours() -> Vec<Row> {
    let expecting =
        |value: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nExpect: {value}\r\nContent-Length: 5\r\n\r\nhello");
    let upgrade = |lines: &str| get(&format!("Connection: Upgrade\r\n{lines}"));
    vec![
        passes_last("a connection that closes", get("Connection: close\r\n"), PLAIN),
        passes_last("a connection that closes and stays", get("Connection: keep-alive, close\r\n"), PLAIN),
        passes_last("a connection that closes in capitals", get("Connection: CLOSE\r\n"), PLAIN),
        passes(
            "fields of one hop",
            get("Connection: X-A, x-b\r\nX-A: 1\r\nX-B: 2\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"),
            PLAIN,
        ),
        passes("a Connection that names Host", get("Connection: Host\r\n"), PLAIN),
        passes(
            "a Connection that names the length",
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        passes(
            "a Connection that names the encoding",
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        passes(
            "a Connection that names ours",
            get("Connection: X-Forwarded-For, X-Real-IP, X-Request-Id, X-Forwarded-Host, X-Forwarded-Proto\r\n"),
            PLAIN,
        ),
        passes("a Connection that is nonsense", get("Connection: ,, (x), \"y\"\r\n"), PLAIN),
        passes(
            "trailers are wanted",
            get("TE: trailers, gzip;q=0.5\r\nConnection: TE\r\n"),
            "GET / HTTP/1.1\r\nconnection: te\r\nhost: a\r\nte: trailers\r\n\r\n",
        ),
        passes("another TE goes no further", get("TE: gzip, deflate\r\nConnection: TE\r\n"), PLAIN),
        passes(
            "an expectation",
            expecting("100-continue"),
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue\r\nhost: a\r\n\r\nhello",
        ),
        passes(
            "an expectation in capitals",
            expecting("100-CONTINUE"),
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue\r\nhost: a\r\n\r\nhello",
        ),
        passes(
            "an expectation twice",
            expecting("100-continue\r\nExpect: 100-continue"),
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue\r\nhost: a\r\n\r\nhello",
        ),
        refused("another expectation", expecting("200-ok"), 417),
        refused("an expectation and another", expecting("100-continue, x"), 417),
        refused("two expectations", expecting("100-continue\r\nExpect: x"), 417),
        refused("an empty expectation", expecting(""), 417),
        passes("an expectation without a body", get("Expect: 100-continue\r\n"), PLAIN),
        passes(
            "an upgrade to h2c",
            get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"),
            PLAIN,
        ),
        passes("an upgrade to H2C", upgrade("Upgrade: H2C\r\n"), PLAIN),
        passes("an upgrade to HTTP/2.0", upgrade("Upgrade: HTTP/2.0\r\n"), PLAIN),
        passes("an upgrade to TLS and HTTP", upgrade("Upgrade: HTTP/1.1, h2\r\n"), PLAIN),
        passes("an upgrade to nothing", upgrade("Upgrade:\r\n"), PLAIN),
        passes("an upgrade that Connection does not name", get("Upgrade: websocket\r\n"), PLAIN),
        passes(
            "an upgrade to h2c that Connection does not name",
            get("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"),
            PLAIN,
        ),
        passes("an upgrade without a protocol", get("Connection: Upgrade\r\n"), PLAIN),
        passes(
            "a WebSocket behind h2c",
            upgrade("Upgrade: h2c, websocket\r\n"),
            "GET / HTTP/1.1\r\nconnection: upgrade\r\nhost: a\r\nupgrade: websocket\r\n\r\n",
        ),
        passes(
            "a WebSocket in two lines",
            upgrade("Upgrade: h2c\r\nUpgrade: websocket\r\n"),
            "GET / HTTP/1.1\r\nconnection: upgrade\r\nhost: a\r\nupgrade: websocket\r\n\r\n",
        ),
        passes(
            "an upgrade with a body is none",
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        passes_last(
            "an upgrade of HTTP/1.0 is none",
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            PLAIN,
        ),
        passes_last("HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", PLAIN),
        passes_last(
            "HTTP/1.0 with what follows it",
            "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        passes("HTTP/1.0 that stays", "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", PLAIN),
    ]
}
