//! The event stream of the admin API.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Gateway, Origin};

/// A stream that is listened to.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn to(gateway: &Gateway) -> Self {
        let mut stream = TcpStream::connect(gateway.admin()).expect("an admin listener");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let head =
            format!("GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer s3cret\r\n\r\n", gateway.admin());
        stream.write_all(head.as_bytes()).expect("a request is taken");
        let mut listener = Self(BufReader::new(stream));
        let status = listener.line().expect("a head");
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        // Behind the head, the length of a chunk and an empty line.
        let is_first = |_| listener.line().expect("a first comment").starts_with(": events from now on");
        assert!((0..20).any(is_first), "the stream does not begin with its comment");
        listener
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).expect("a line within the time");
        (read > 0).then_some(line)
    }

    /// The name and data of the next event; `None`: the stream has ended.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut name = None;
        loop {
            let line = self.line()?;
            if let Some(event) = line.strip_prefix("event: ") {
                name = Some(event.trim().to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((name.expect("a name before the data"), serde_json::from_str(data).expect("JSON")));
            }
        }
    }
}

fn start(origin: &Origin) -> Gateway {
    let config = format!(
        "admin: {{address: 127.0.0.1:0, token_file: token}}\nupstream: {}\nlimits: [{{name: pace, key: header.x-user, rate: 1/hour}}]",
        origin.url()
    );
    Gateway::with_token(config)
}

#[test]
fn who_listens_hears_of_denials_and_bans_as_they_happen_and_of_the_end() {
    let origin = Origin::start();
    let mut gateway = start(&origin);
    let (mut first, mut second) = (Listener::to(&gateway), Listener::to(&gateway));
    for expected in [200, 429] {
        assert_eq!(gateway.get("/x").header("X-User", "geheim-alice").status(), expected);
    }
    for listener in [&mut first, &mut second] {
        let (name, data) = listener.next().expect("an event");
        assert_eq!((&*name, &data["limit"], &data["client"]), ("denial", &"pace".into(), &"127.0.0.1".into()));
        assert!(!data.to_string().contains("geheim"), "{data}");
    }
    let ban = gateway
        .admin_request("POST", "/api/v1/bans")
        .header("Authorization", "Bearer s3cret")
        .json(r#"{"address": "198.51.100.7/32", "for": "1h", "reason": "an operator"}"#)
        .send();
    assert_eq!(ban.status, 201, "{}", ban.text());
    let (name, data) = first.next().expect("an event");
    assert_eq!((&*name, &data["address"], &data["reason"]), ("ban", &"198.51.100.7/32".into(), &"an operator".into()));
    gateway.signal("TERM");
    assert_eq!(first.next(), None);
    assert!(gateway.ended().success());
}
