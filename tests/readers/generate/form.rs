//! Forms and queries: `name=value&name=value`.

use fastrand::Rng;

use super::{field_name, mutate, once_in, pick, recorded, typed};
use crate::case::Case;

pub(super) fn body(rng: &mut Rng) -> Case {
    if once_in(rng, 4) {
        return recorded::case(rng, "urlencoded", TOKENS);
    }
    let mut tricks = Vec::new();
    let mut text = pairs(rng, &mut tricks);
    if once_in(rng, 4) {
        tricks.push("mutated");
        mutate::bytes(rng, &mut text, TOKENS);
    }
    typed::body(rng, "application/x-www-form-urlencoded", text, tricks)
}

pub(super) fn query(rng: &mut Rng) -> Case {
    let mut tricks = Vec::new();
    let mut text = pairs(rng, &mut tricks);
    text.truncate(30_000);
    if once_in(rng, 4) {
        tricks.push("mutated");
        mutate::bytes(rng, &mut text, TOKENS);
    }
    if !once_in(rng, 5) {
        // What no target may hold is escaped.
        text = text
            .into_iter()
            .flat_map(|byte| if byte.is_ascii_graphic() { vec![byte] } else { format!("%{byte:02x}").into_bytes() })
            .collect();
    }
    // A fragment goes no further than the gateway.
    text.retain(|byte| *byte != b'#');
    let begins = pick(rng, &["?", "?", "?", "?", "??", "?&", "?;", "/?", "/x?", "%3f", ";"]);
    let query = [begins.as_bytes(), &text].concat();
    let mut lines = Vec::new();
    if once_in(rng, 4) {
        lines.push(("Content-Type", typed::content_type(rng, "application/x-www-form-urlencoded", "")));
    }
    Case { query, lines, body: Vec::new(), tricks }
}

fn pairs(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> Vec<u8> {
    let mut pairs = vec![target(rng)];
    for _ in 0..rng.usize(..3) {
        let other = match rng.u32(..4) {
            0 => b"password=x".to_vec(),
            1 => [&field_name::name(rng)[..], b"=bob"].concat(),
            2 => pick(rng, OTHERS).as_bytes().to_vec(),
            _ => b"username=bob".to_vec(),
        };
        pairs.insert(rng.usize(..=pairs.len()), other);
    }
    if once_in(rng, 30) {
        tricks.push("many");
        let count = pick(rng, &[7, 8, 9, 63, 64, 65, 500, 999, 1000, 1001, 2000]);
        let decoy = pick(
            rng,
            &["username=bob", "a=b", "a", "username[]=bob", "=", "username", "USERNAME=bob", "user_name=bob"],
        );
        let is_before = rng.bool();
        let many = vec![decoy.as_bytes().to_vec(); count];
        if is_before {
            pairs.splice(0..0, many)
        } else {
            pairs.splice(pairs.len().., many)
        };
    }
    if once_in(rng, 40) {
        tricks.push("long");
        let long = "x".repeat(pick(rng, &[250, 256, 300, 1024, 2048, 5000, 66_000]));
        let pair = if rng.bool() { format!("{long}=1") } else { format!("x={long}") };
        pairs.insert(rng.usize(..=pairs.len()), pair.into_bytes());
    }
    let usual = if once_in(rng, 8) {
        pick(rng, &[";", "&amp;", "&&", "\n", "\r\n", "& ", ";&", "&;", ",", "|", "\0", "%26", "&?"])
    } else {
        "&"
    };
    let mut text = Vec::new();
    for (at, pair) in pairs.iter().enumerate() {
        if at > 0 {
            text.extend_from_slice(
                if once_in(rng, 20) { pick(rng, &[";", "&&", "&amp;", "\n", "%26"]) } else { usual }.as_bytes(),
            );
        }
        text.extend_from_slice(pair);
    }
    text
}

/// The pair with the name.
fn target(rng: &mut Rng) -> Vec<u8> {
    let name = field_name::name(rng);
    let mut name = escaped(rng, &name, true);
    if once_in(rng, 20) {
        let at = rng.usize(..=name.len());
        name.splice(at..at, pick(rng, ESCAPES).bytes());
    }
    let equals = if once_in(rng, 12) {
        pick(rng, &["%3d", "==", " = ", "=&", ":", "", "=+", "\t=", "=\0", "%3D=", "=;", "[=", "]="])
    } else {
        "="
    };
    let value = if once_in(rng, 4) { pick(rng, VALUES).to_owned() } else { "alice".to_owned() };
    let value = escaped(rng, value.as_bytes(), false);
    [&name, equals.as_bytes(), &value].concat()
}

/// Percent-encoded as clients do it, or too much, or too little.
fn escaped(rng: &mut Rng, text: &[u8], is_name: bool) -> Vec<u8> {
    let way = rng.u32(..8);
    let mut out = Vec::new();
    for byte in text {
        let plain = byte.is_ascii_alphanumeric() || b"-_.*%+".contains(byte);
        match way {
            0 if is_name => out.push(*byte),
            1 if *byte == b' ' => out.push(b'+'),
            2 => out.extend(format!("%{byte:02X}").into_bytes()),
            3 if rng.bool() => out.extend(format!("%{byte:02x}").into_bytes()),
            4 if once_in(rng, 8) => out.extend(format!("%u00{byte:02x}").into_bytes()),
            5 if once_in(rng, 8) => out.extend(format!("%25{byte:02x}").into_bytes()),
            6 if once_in(rng, 8) && byte.is_ascii() => {
                out.extend(format!("%C{}%{:02X}", byte >> 6, 0x80 | (byte & 0x3f)).into_bytes());
            }
            _ if plain => out.push(*byte),
            _ if byte.is_ascii() && way == 7 => out.push(*byte),
            _ => out.extend(format!("%{byte:02X}").into_bytes()),
        }
    }
    out
}

const VALUES: &[&str] = &[
    "Alice",
    "ALICE",
    " alice",
    "alice ",
    "\talice\r\n",
    "alice\0",
    "\0alice",
    "al\0ice",
    "alice\u{200b}",
    "\u{feff}alice",
    "\u{ff41}lice",
    "\u{ff21}\u{ff2c}\u{ff29}\u{ff23}\u{ff25}",
    "al\u{ad}ice",
    "alice\u{a0}",
    "alice;x=1",
    "alice&x",
    "alice,bob",
    "bob,alice",
    "=alice",
    "alice=",
    "alice#",
    "\"alice\"",
    "alice\u{7f}",
];

const OTHERS: &[&str] = &[
    "_charset_=utf-16",
    "_charset_=ibm037",
    "utf8=%E2%9C%93",
    "_method=PUT",
    "username",
    "username=",
    "=bob",
    "",
    "{\"username\":\"bob\"}",
    "a[b][c][d][e][f][g]=1",
    "username[x]=bob",
    "username%00=bob",
    "x=1;username=bob",
    "x=%",
    "x=%zz",
    "x=%u0026username=bob",
    "x=\"&username=bob&\"",
    "user=bob",
    "user[x]=bob",
    "__proto__[username]=bob",
];

const ESCAPES: &[&str] = &[
    "%",
    "%0",
    "%zz",
    "%u0",
    "%00",
    "%0a",
    "%5b",
    "%5d",
    "%2e",
    "%20",
    "+",
    "%09",
    "%c0%80",
    "%ff",
    "%EF%BB%BF",
    "%E2%80%8B",
    "%26",
    "%3b",
    "%3d",
    "%25",
    "%2b",
];

const TOKENS: &[&str] = &[
    "username=alice",
    "username=bob",
    "&",
    ";",
    "=",
    "%",
    "%26",
    "%3d",
    "+",
    "%00",
    "\0",
    "[",
    "]",
    "?",
    "#",
    "\r\n",
    "\n",
    "\u{feff}",
    "\"",
    "{",
    "}",
    "<",
    "--",
    "--b\r\n",
    "&username=alice&",
    "{\"username\":\"alice\"}",
    "username",
    "alice",
    "Content-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n",
    "\u{ff}",
    "%u0026",
    "&amp;",
];
