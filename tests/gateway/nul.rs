//! A NUL and the text behind it make no other key: many applications read `alice\0x` as `alice`.

use std::fmt::Write;

use crate::bodies::gzip;
use crate::support::{Gateway, Origin, Request};

/// A request with a user name, sent in one of the ways that can hold a NUL.
struct Way {
    selector: &'static str,
    spelt: String,
    say: Box<Say>,
}

/// Has a request say a name.
type Say = dyn Fn(Request, &str) -> Request;

fn way(selector: &'static str, spelt: &str, say: impl Fn(Request, &str) -> Request + 'static) -> Way {
    Way { selector, spelt: spelt.to_owned(), say: Box::new(say) }
}

const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=cut";

/// `\0` in a name stands for a NUL; bodies and lines spell it as they can.
fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for selector in ["form.user", "param.user"] {
        for nul in ESCAPED {
            ways.push(way(selector, nul, move |ask, name| ask.body(FORM, form(name, nul))));
        }
        for nul in RAW {
            let spelt = format!("raw {nul:02x?}");
            ways.push(way(selector, &spelt, move |ask, name| ask.body(FORM, [b"user=", &raw(name, nul)[..]].concat())));
            ways.push(way(selector, &format!("part {spelt}"), move |ask, name| {
                ask.body(PARTS, part("", &raw(name, nul)))
            }));
        }
        ways.push(way(selector, "unlabelled", |ask, name| ask.body("text/plain", form(name, "%00"))));
        ways.push(way(selector, "gzip", |ask, name| {
            ask.header("Content-Encoding", "gzip").body(FORM, gzip(&form(name, "%00")))
        }));
        ways.push(way(selector, "base64 part", |ask, name| {
            ask.body(PARTS, part("\r\nContent-Transfer-Encoding: base64", base64(name.as_bytes()).as_bytes()))
        }));
        ways.push(way(selector, "quoted part", |ask, name| {
            let text = name.replace('\0', "=00");
            ask.body(PARTS, part("\r\nContent-Transfer-Encoding: quoted-printable", text.as_bytes()))
        }));
    }
    for selector in ["json.user", "param.user"] {
        ways.push(way(selector, "\\u0000", |ask, name| ask.json(&json(name))));
        ways.push(way(selector, "JSON as text", |ask, name| ask.body("text/plain", json(name))));
        for nul in RAW {
            ways.push(way(selector, &format!("JSON raw {nul:02x?}"), move |ask, name| {
                ask.body("application/json", [b"{\"user\":\"", &raw(name, nul)[..], b"\"}"].concat())
            }));
        }
        ways.push(way(selector, "UTF-16LE", |ask, name| {
            let text: Vec<u8> = json(name).encode_utf16().flat_map(u16::to_le_bytes).collect();
            ask.body("application/json", text)
        }));
        ways.push(way(selector, "UTF-16BE, raw", |ask, name| {
            let text = format!("{{\"user\":\"{name}\"}}");
            let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            ask.body("application/json", text)
        }));
        ways.push(way(selector, "UTF-32BE, raw", |ask, name| {
            let text = format!("{{\"user\":\"{name}\"}}");
            let text: Vec<u8> = text.chars().flat_map(|letter| u32::from(letter).to_be_bytes()).collect();
            ask.body("application/json", text)
        }));
    }
    for selector in ["query.user", "param.user"] {
        for nul in ESCAPED {
            ways.push(way(selector, &format!("?{nul}"), move |ask, name| asking(ask, &form(name, nul))));
        }
    }
    for nul in RAW {
        ways.push(way("basic.user", &format!("basic {nul:02x?}"), move |ask, name| {
            let line = [&raw(name, nul)[..], b":guess"].concat();
            ask.header("Authorization", &format!("Basic {}", base64(&line)))
        }));
    }
    for nul in ["%00", "%c0%80"] {
        ways.push(way("cookie.user", &format!("cookie {nul}"), move |ask, name| {
            ask.header("Cookie", &form(name, nul))
        }));
    }
    ways.push(way("cookie.user", "octal", |ask, name| {
        ask.header("Cookie", &format!("user=\"{}\"", name.replace('\0', "\\000")))
    }));
    ways
}

/// A NUL in a form, a query or a cookie, where it is one to anybody.
const ESCAPED: [&str; 7] = ["%00", "%c0%80", "%C0%80", "%e0%80%80", "%f0%80%80%80", "%u0000", "%00%00"];

/// A NUL in bytes: as it is, and as an encoder says it that must not write one.
const RAW: [&[u8]; 4] = [&[0], &[0xc0, 0x80], &[0xe0, 0x80, 0x80], &[0xf0, 0x80, 0x80, 0x80]];

fn form(name: &str, nul: &str) -> String {
    format!("user={}", name.replace('\0', nul))
}

fn raw(name: &str, nul: &[u8]) -> Vec<u8> {
    name.bytes().flat_map(|byte| if byte == 0 { nul.to_vec() } else { vec![byte] }).collect()
}

fn json(name: &str) -> String {
    format!("{{\"user\":\"{}\"}}", name.replace('\0', "\\u0000"))
}

fn part(headers: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("--cut\r\nContent-Disposition: form-data; name=\"user\"{headers}\r\n\r\n");
    [head.as_bytes(), value, b"\r\n--cut--\r\n"].concat()
}

fn asking(ask: Request, query: &str) -> Request {
    let bytes = ask.bytes();
    let line = String::from_utf8_lossy(&bytes);
    let target = line.split(' ').nth(1).expect("a target").to_owned();
    ask.target(&format!("{target}?{query}"))
}

fn base64(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let mut text = String::new();
    for six in bits.chunks(6) {
        let digit = (0..6).fold(0, |sum, at| sum << 1 | usize::from(*six.get(at).unwrap_or(&0)));
        text.push(char::from(digits[digit]));
    }
    text
}

/// One request for each way and name: a route for each selector, normalised and raw.
fn gateway(origin: &Origin) -> Gateway {
    let mut config = format!("upstream: {}\nserver: {{max_headers: 20}}\nroutes:\n", origin.url());
    for selector in ["form.user", "json.user", "query.user", "param.user", "basic.user", "cookie.user"] {
        for kind in kinds(selector) {
            let part = if *kind == "raw" { format!("{{{selector}: {{raw: true}}}}") } else { selector.to_owned() };
            let limit = format!("{{name: {kind}-of-{selector}, key: [path, {part}], rate: 1/hour}}");
            writeln!(config, "  - {{name: {kind}-{selector}, match: /{kind}/{selector}/*, limits: [{limit}]}}")
                .expect("memory");
        }
    }
    Gateway::start(config)
}

/// What is taken as sent anyway cannot be asked for raw.
fn kinds(selector: &str) -> &'static [&'static str] {
    if matches!(selector, "query.user" | "cookie.user") { &["plain"] } else { &["plain", "raw"] }
}

/// Of two requests with these names the second is denied, in every way and on every route.
#[track_caller]
fn are_one(first: &str, second: &str) {
    let origin = Origin::start();
    let gateway = gateway(&origin);
    let (mut asked, mut slipped) = (0, Vec::new());
    for (number, Way { selector, spelt, say }) in ways().iter().enumerate() {
        for kind in kinds(selector) {
            let path = format!("/{kind}/{selector}/{number}");
            let ask = |name| say(gateway.post(&path), name).status();
            asked += 1;
            assert_eq!(ask(first), 200, "{kind} {selector} in {spelt}");
            if ask(second) != 429 {
                slipped.push(format!("{kind} {selector} in {spelt}"));
            }
        }
    }
    assert!(slipped.is_empty(), "{} of {asked} slipped past: {slipped:#?}", slipped.len());
}

#[test]
fn what_follows_a_nul_makes_no_other_key() {
    are_one("alice", "alice\0x");
    are_one("alice\0x", "alice");
    are_one("alice\0x", "alice\0y");
}

#[test]
fn a_nul_that_an_application_leaves_out_makes_no_other_key() {
    are_one("alice", "al\0ice");
    are_one("alice", "\0alice");
    are_one("alice", "alice\0");
}

#[test]
fn a_name_without_a_nul_is_another() {
    let origin = Origin::start();
    let gateway = gateway(&origin);
    assert_eq!(gateway.post("/plain/form.user/1").form("user=alice%00x").status(), 200);
    assert_eq!(gateway.post("/plain/form.user/1").form("user=bob").status(), 200);
}

#[test]
fn a_captured_segment_ends_at_a_nul() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - {{name: one, match: '/of/{{user}}/guess', limits: [{{key: path.user, rate: 1/hour}}]}}",
        origin.url()
    ));
    assert_eq!(gateway.get("/of/alice/guess").status(), 200);
    assert_eq!(gateway.get("/of/alice%00x/guess").status(), 429);
}

#[test]
fn a_header_ends_at_a_nul_that_an_encoder_wrote_in_two_bytes() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{key: header.x-user, rate: 1/hour}}", origin.url()));
    let ask = |value: &[u8]| {
        let head = [b"GET / HTTP/1.1\r\nHost: a\r\nX-User: ", value, b"\r\n\r\n"].concat();
        gateway.connect().send(head).response().status
    };
    assert_eq!(ask(b"alice"), 200);
    assert_eq!(ask(b"alice\xc0\x80x"), 429);
}

#[test]
fn a_name_of_a_field_in_json_ends_at_a_nul() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{key: json.auth.user, rate: 1/hour}}", origin.url()));
    assert_eq!(gateway.post("/").json(r#"{"auth":{"user":"alice"}}"#).status(), 200);
    assert_eq!(gateway.post("/").json(r#"{"auth\u0000x":{"user\u0000y":"alice"}}"#).status(), 429);
}

#[test]
fn a_route_is_met_by_a_method_and_a_field_that_end_at_a_nul() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - {{name: login, match: {{methods: [DELETE], path: /x, query: {{action: login}}}}, limits: [{{key: [], rate: 1/hour}}]}}",
        origin.url()
    ));
    assert_eq!(gateway.request("DELETE", "/x?action=login").status(), 200);
    assert_eq!(gateway.request("DELETE", "/x?action=login%00y").status(), 429);
    assert_eq!(gateway.post("/x?action=login").form("_method=DELETE%00y").status(), 429);
}

#[test]
fn a_key_said_by_hand_ends_at_a_nul_too() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nlimits:\n  - {{name: user, key: {{param.user: {{raw: true}}}}, rate: 1/hour}}",
        origin.url()
    ));
    assert_eq!(gateway.post("/").form("user=alice").status(), 200);
    let api = |method, target| Request::new(gateway.admin(), method, target).host("localhost");
    let state = api("GET", "/api/v1/limits/user/state?param.user=alice%00x").send().json();
    assert_eq!(state["allowed"], false, "{state}");
    let ban = r#"{"limit": "user", "key": {"param.user": "bob\u0000x"}, "for": "1h", "reason": "a test"}"#;
    assert_eq!(api("POST", "/api/v1/bans").json(ban).status(), 201);
    assert_eq!(gateway.post("/").form("user=bob").status(), 429);
}
