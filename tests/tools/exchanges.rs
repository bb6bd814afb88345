//! Exchanges of every kind, with any proxy between the client and the application.

use std::net::SocketAddr;

use crate::support::{Exchange, Origin, RawClient, Request, digest};

/// More than buffers on the way hold.
const LARGE: usize = 3 << 20;

fn large() -> Vec<u8> {
    (0..LARGE / 4).flat_map(|number| u32::try_from(number).expect("not that many").to_le_bytes()).collect()
}

/// An application that has an answer of every kind.
pub(crate) fn application() -> Origin {
    Origin::scripted(|mut exchange| {
        while let Some(mut received) = exchange.head() {
            if received.target == "/early" {
                exchange.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
                exchange.client_has_left();
                return;
            }
            exchange.body(&mut received);
            let is_said = match (received.target.as_str(), received.header("if-none-match")) {
                ("/large", _) if received.method == "HEAD" => {
                    exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"))
                }
                ("/large", _) => {
                    exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"))
                        && exchange.write(large())
                }
                ("/chunked", _) => chunked(&mut exchange),
                ("/etag", Some(_)) => exchange.write("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"),
                ("/none", _) => exchange.write("HTTP/1.1 204 No Content\r\n\r\n"),
                ("/cut", _) => {
                    exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello");
                    return;
                }
                _ => {
                    let said = format!("{} {}", received.body_length, received.body_digest);
                    exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len()))
                }
            };
            if !is_said {
                return;
            }
        }
    })
}

fn chunked(exchange: &mut Exchange) -> bool {
    exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        && large()
            .chunks(40_000)
            .all(|chunk| exchange.write([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()))
        && exchange.write("0\r\n\r\n")
}

/// Has exchanges of every kind with [`application`], through the server at this address.
#[track_caller]
pub(crate) fn check(address: SocketAddr, way: &str) {
    let (content, ask) = (large(), |method: &str, target: &str| Request::new(address, method, target));
    let (expected, told) = (digest(&content), format!("{LARGE} {}", digest(&content)));
    let mut client = RawClient::connect(address);
    for target in ["/large", "/chunked"] {
        let response = ask("GET", target).send_on(&mut client);
        assert_eq!((response.status, response.whole), (200, true), "{way} {target}");
        assert_eq!((response.body_length, response.body_digest), (LARGE as u64, expected), "{way} {target}");
    }
    let response = ask("HEAD", "/large").send_on(&mut client);
    assert_eq!((response.status, response.header("content-length")), (200, Some(LARGE.to_string().as_str())), "{way}");
    let response = ask("GET", "/etag").header("If-None-Match", "\"1\"").send_on(&mut client);
    assert_eq!((response.status, response.header("etag")), (304, Some("\"1\"")), "{way}");
    assert_eq!(ask("GET", "/none").send_on(&mut client).status, 204, "{way}");
    assert_eq!(ask("PUT", "/up").body("text/plain", &content).send_on(&mut client).text(), told, "{way}");
    let mut upload = b"PUT /up HTTP/1.1\r\nHost: app.example\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in content.chunks(40_000) {
        upload.extend([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    upload.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(client.send(upload).response().text(), told, "{way}");
    for _ in 0..20 {
        assert_eq!(ask("GET", "/").send_on(&mut client).text().split(' ').next(), Some("0"), "{way}");
    }
    // Part of a body, whose rest is not waited for.
    let mut early = RawClient::connect(address);
    early.send(format!(
        "POST /early HTTP/1.1\r\nHost: app.example\r\nContent-Length: {LARGE}\r\n\r\n{}",
        "x".repeat(40_000)
    ));
    let response = early.response_to("POST");
    assert_eq!((response.status, response.text().as_str()), (413, "big"), "{way}");
    let response = ask("GET", "/cut").send();
    assert!(response.status == 502 || !response.whole, "{way}: {response:?}");
}
