//! Credentials of the scheme Basic.

use fastrand::Rng;
use portcullis::words::base64;

use super::{mutate, once_in, pick};
use crate::case::Case;

pub(super) fn header(rng: &mut Rng) -> Case {
    let mut tricks = Vec::new();
    let mut lines = vec![credentials(rng, &mut tricks)];
    if once_in(rng, 8) {
        tricks.push("lines");
        lines.insert(
            rng.usize(..=1),
            if rng.bool() { b"Basic Ym9iOng=".to_vec() } else { credentials(rng, &mut tricks) },
        );
    }
    if once_in(rng, 3) {
        tricks.push("mutated");
        mutate::bytes(rng, &mut lines[0], TOKENS);
    }
    let lines = lines
        .into_iter()
        .map(|line| (pick(rng, &["Authorization", "Authorization", "authorization", "AUTHORIZATION"]), line))
        .collect();
    Case { query: Vec::new(), lines, body: Vec::new(), tricks }
}

fn credentials(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> Vec<u8> {
    let scheme = if once_in(rng, 4) { pick(rng, SCHEMES) } else { "Basic " };
    let user = if once_in(rng, 4) { pick(rng, USERS) } else { "alice:secret" };
    let mut encoded = base64::encode(user.as_bytes()).into_bytes();
    if once_in(rng, 4) {
        tricks.push("padding");
        while encoded.last() == Some(&b'=') {
            encoded.pop();
        }
        encoded.extend(pick(rng, &["", "=", "==", "===", "====", "=x", "==YQ", "= =", "=\t="]).bytes());
    }
    for _ in 0..pick(rng, &[0, 0, 0, 1, 1, 2, 3]) {
        tricks.push("inserted");
        let at = rng.usize(..=encoded.len());
        encoded.splice(at..at, pick(rng, SIGNS).bytes());
    }
    if once_in(rng, 8) {
        tricks.push("two");
        let other = base64::encode(pick(rng, &["bob:x", "bob:", "bob", "x", "xy", "xyz", ":"]).as_bytes());
        encoded = match rng.u32(..4) {
            0 => [other.as_bytes(), &encoded].concat(),
            1 => [&encoded, other.as_bytes()].concat(),
            2 => [other.as_bytes(), b",", &encoded].concat(),
            _ => [other.as_bytes(), b" ", &encoded].concat(),
        };
    }
    if once_in(rng, 12) {
        tricks.push("low bits");
        // The last letter before the padding with other bits that are not used.
        if let Some(last) = encoded.iter().rposition(|byte| *byte != b'=') {
            encoded[last] = encoded[last].wrapping_add(pick(rng, &[1, 2, 3]));
        }
    }
    [scheme.as_bytes(), &encoded].concat()
}

const SCHEMES: &[&str] = &[
    "basic ",
    "BASIC ",
    "bAsIc ",
    "Basic  ",
    "Basic\t",
    " Basic ",
    "Basic \t",
    "Basic",
    "Basic:",
    "Basic=",
    "Basic, ",
    "Basic realm=\"x\", ",
    "Bearer ",
    "Digest ",
    "Bearer x, Basic ",
    "Basic \u{a0}",
    "XBasic ",
    "Basic\u{a0}",
    "Negotiate ",
    "",
    "Basic Basic ",
    "\"Basic\" ",
    "Basic charset=utf-8 ",
    "Basic Ym9iOng=, Basic ",
];

const USERS: &[&str] = &[
    "Alice:x",
    "alice",
    "alice:",
    "alice::",
    "alice: x",
    " alice:x",
    "alice :x",
    "alice\0:x",
    "\0alice:x",
    "al\0ice:x",
    "alice\n:x",
    "\u{feff}alice:x",
    "\u{ff41}lice:x",
    "alice\u{200b}:x",
    ":alice:x",
    "x\\alice:x",
    "alice@x:y",
    "alice\u{e9}:x",
    "alice:\u{ff}\u{fe}",
    "alice\r:x",
    "\"alice\":x",
    "alice%3ax:y",
    "%61lice:x",
    "alice?>~:x",
    "alice:???>>>~~~",
];

const SIGNS: &[&str] = &[
    "=", "==", " ", "\t", "-", "_", "+", "/", "!", "*", ".", ",", "\"", "'", "\u{a0}", "\u{e9}", "%", "%3d", "\\",
    "\\r\\n", ":", "{", "~", "#", "@", "$", "&", ";", "?", "(", "|", "^", "`", "\u{ff}", "=-", "=YWxp",
];

const TOKENS: &[&str] = &[
    "=",
    "==",
    " ",
    "-",
    "_",
    "+",
    "/",
    "!",
    ",",
    "\t",
    "Ym9i",
    "Og",
    "YWxpY2U6",
    "YWxpY2U6eA==",
    "Basic ",
    "\"",
    "%3D",
    "\u{a0}",
    "\u{e9}",
    ":",
    ";",
    "A",
    ".",
];
