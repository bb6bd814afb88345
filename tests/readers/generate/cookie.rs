//! Cookie headers.

use fastrand::Rng;

use super::{mutate, once_in, pick};
use crate::case::Case;

pub(super) fn header(rng: &mut Rng) -> Case {
    let mut tricks = Vec::new();
    let mut cookies = vec![target(rng)];
    for _ in 0..rng.usize(..3) {
        let other = if rng.bool() { pick(rng, OTHERS) } else { "sid=bob" };
        cookies.insert(rng.usize(..=cookies.len()), other.as_bytes().to_vec());
    }
    if once_in(rng, 40) {
        tricks.push("many");
        let count = pick(rng, &[8, 9, 64, 65, 99, 180, 300, 1000]);
        let decoy = pick(rng, &["sid=bob", "a=b", "SID=bob"]).as_bytes().to_vec();
        let many = vec![decoy; count];
        if rng.bool() {
            cookies.splice(0..0, many)
        } else {
            cookies.splice(cookies.len().., many)
        };
    }
    let separator = if once_in(rng, 4) {
        tricks.push("separator");
        pick(
            rng,
            &[
                ";", ",", ", ", " ", "&", "; ;", ";;", ";\t", " ; ", "\t", ";,", "|", ": ", ";\u{a0}", "; $",
                ";\u{85}", ";  ",
            ],
        )
    } else {
        "; "
    };
    let mut lines: Vec<Vec<u8>> = Vec::new();
    if once_in(rng, 8) {
        tricks.push("lines");
        let at = rng.usize(..=cookies.len());
        lines.push(cookies[..at].join(separator.as_bytes()));
        lines.push(cookies[at..].join(separator.as_bytes()));
    } else {
        lines.push(cookies.join(separator.as_bytes()));
    }
    if once_in(rng, 3) {
        tricks.push("mutated");
        let at = rng.usize(..lines.len());
        mutate::bytes(rng, &mut lines[at], TOKENS);
    }
    let lines = lines.into_iter().map(|line| (pick(rng, &["Cookie", "Cookie", "cookie", "COOKIE"]), line)).collect();
    Case { query: Vec::new(), lines, body: Vec::new(), tricks }
}

fn target(rng: &mut Rng) -> Vec<u8> {
    let name = if once_in(rng, 3) { pick(rng, NAMES) } else { "sid" };
    let equals = if once_in(rng, 8) {
        pick(rng, &[" = ", " =", "= ", "==", "\t=", "=\t", "", ":", "=\u{a0}", "%3d", "=\"\"", "=,"])
    } else {
        "="
    };
    let value = if once_in(rng, 3) { pick(rng, VALUES) } else { "alice" };
    let mut text = [name, equals].concat().into_bytes();
    match rng.u32(..12) {
        0 => text.extend(value.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes())),
        1 => text.extend([b"\"", value.as_bytes(), b"\""].concat()),
        2 => text.extend(
            [
                &b"\""[..],
                &value.bytes().flat_map(|byte| format!("\\{byte:03o}").into_bytes()).collect::<Vec<_>>(),
                b"\"",
            ]
            .concat(),
        ),
        3 => {
            text.extend(
                [&b"\""[..], &value.bytes().flat_map(|byte| [b'\\', byte]).collect::<Vec<_>>(), b"\""].concat(),
            );
        }
        4 => text.extend(value.bytes().flat_map(|byte| format!("\\{byte:03o}").into_bytes())),
        _ => text.extend(value.bytes()),
    }
    if once_in(rng, 12) {
        text.extend(
            pick(
                rng,
                &[
                    "; $Path=/",
                    "; $Domain=a",
                    " ",
                    "\t",
                    "; Path=/",
                    "\u{a0}",
                    ",",
                    "\"",
                    "&x",
                    "; expires=Mon, 01 Jan 2029 00:00:00 GMT",
                ],
            )
            .bytes(),
        );
    }
    text
}

const NAMES: &[&str] = &[
    "SID",
    "Sid",
    " sid",
    "sid ",
    "\tsid",
    "sid\t",
    "%73id",
    "s%69d",
    "sid[]",
    "sid[0]",
    "sid[a]",
    "\"sid\"",
    "$sid",
    "sid%00",
    "sid%00x",
    "s.id",
    "sid.",
    "+sid",
    "%20sid",
    "[sid",
    "sid[",
    "\u{a0}sid",
    "\u{feff}sid",
    "sid,",
    ",sid",
    "$Version=1; sid",
    "$Version=1, sid",
    "$Version=\"1\"; sid",
    "x sid",
    "x,sid",
    "x; sid",
    "x=\"; sid=bob; \"; sid",
    "x=\"; sid",
    "x=\"a\\\"; sid",
    "=; sid",
    "==sid",
    "=sid",
    "sid;",
    "x=y sid",
    "x=\"y\" sid",
    "__Host-sid",
    "sid\u{b}",
    "x&sid",
];

const VALUES: &[&str] = &[
    "Alice",
    " alice",
    "alice ",
    "alice%00",
    "a%6cice",
    "alice%20",
    "+alice",
    "alice+",
    "alice%0a",
    "alice,bob",
    "bob,alice",
    "bob, sid=alice",
    "bob sid=alice",
    "bob&alice",
    "alice&bob",
    "\"alice",
    "alice\"",
    "ali\"ce",
    "\"alice\" x",
    "\"ali\" \"ce\"",
    "'alice'",
    "alice=bob",
    "=alice",
    "alice\\",
    "al\\ice",
    "j:\"alice\"",
    "s:alice.x",
    "%u0061lice",
    "%ff",
    "alice%",
    "\u{e9}",
    "alice|x",
    "\"bob;sid=alice\"",
    "\"bob; sid=alice; x=\"",
    "bob\t; sid=alice",
    "(alice)",
    "alice (x)",
    "[alice]",
];

const OTHERS: &[&str] = &[
    "a=b",
    "a",
    "=",
    "",
    "=bob",
    "a=\"b;c\"",
    "a=\"b",
    "a=b\"",
    "a=\"",
    "a=\"\\\"",
    "$Version=1",
    "$Path=/",
    "expires=Mon, 01 Jan 2029 00:00:00 GMT",
    "secure",
    "HttpOnly",
    "a=b c",
    "a b=c",
    "a=[1,2]",
    "a={\"x\":1}",
    "__proto__=x",
    "sid",
    "sid=",
    "SID=bob",
    "sid =bob",
    "\u{e9}=1",
    "a=\u{e9}",
    "path=/; domain=x",
    "a=b,c=d",
    "sid=\"bob\"",
    "(a)=b",
    "a@b=c",
    "a:b=c",
    "sid%00=bob",
];

const TOKENS: &[&str] = &[
    ";",
    ",",
    "=",
    " ",
    "\t",
    "\"",
    "\\",
    "sid=alice",
    "sid=bob",
    "; sid=alice",
    "; sid=bob",
    ", sid=alice",
    "%3b",
    "%3d",
    "%22",
    "%00",
    "$",
    "&",
    "sid",
    "alice",
    "\\\"",
    "\\073",
    "[",
    "]",
    "+",
    "\u{a0}",
    "\u{e9}",
    "\u{85}",
    "?",
    "(",
    "{",
    "|",
    ":",
    "/",
    "@",
    "<",
];
