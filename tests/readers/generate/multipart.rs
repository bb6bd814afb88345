//! Multipart bodies.

use fastrand::Rng;

use super::{field_name, mutate, once_in, pick, recorded, typed};
use crate::case::Case;

pub(super) fn body(rng: &mut Rng) -> Case {
    if once_in(rng, 4) {
        return recorded::case(rng, "multipart", TOKENS);
    }
    let mut tricks = Vec::new();
    let (declared, boundary) = boundary(rng, &mut tricks);
    let mut parts = vec![target(rng, &mut tricks)];
    for _ in 0..rng.usize(..3) {
        let other = match rng.u32(..5) {
            0 => part("password", "x"),
            1 => b"Content-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\x89PNG".to_vec(),
            2 => nested(rng),
            3 => part(pick(rng, &["_charset_", "x", "", "username[]", "user_name", "USERNAME"]), pick(rng, &["utf-16", "bob", "iso-8859-1"])),
            _ => part("username", "bob"),
        };
        parts.insert(rng.usize(..=parts.len()), other);
    }
    if once_in(rng, 30) {
        tricks.push("many");
        let count = pick(rng, &[7, 8, 9, 63, 64, 65, 100, 128, 300, 999, 1000, 1001]);
        let decoy = pick(rng, &["username", "a", "username[]", "USERNAME", "user_name"]);
        let many = vec![part(decoy, "bob"); count];
        if rng.bool() {
            parts.splice(0..0, many)
        } else {
            parts.splice(parts.len().., many)
        };
    }
    let mut text = assembled(rng, &boundary, &parts, &mut tricks);
    if once_in(rng, 4) {
        tricks.push("mutated");
        mutate::bytes(rng, &mut text, TOKENS);
    }
    typed::body(rng, &declared, text, tricks)
}

/// The declared type, and the boundary that the body is written with.
fn boundary(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> (String, String) {
    if !once_in(rng, 4) {
        let boundary = pick(rng, &["b", "----WebKitFormBoundary7MA4YWxkTrZu0gW", "X-BOUNDARY", "0"]);
        return (format!("multipart/form-data; boundary={boundary}"), boundary.to_owned());
    }
    tricks.push("boundary");
    let (declared, boundary) = pick(rng, BOUNDARIES);
    if once_in(rng, 10) {
        let long = "b".repeat(pick(rng, &[69, 70, 71, 72, 200, 256, 1000]));
        return (format!("multipart/form-data; boundary={long}"), long);
    }
    (declared.to_owned(), boundary.to_owned())
}

const BOUNDARIES: &[(&str, &str)] = &[
    ("multipart/form-data; boundary=\"b\"", "b"),
    ("multipart/form-data; boundary='b'", "b"),
    ("multipart/form-data; boundary='b'", "'b'"),
    ("multipart/form-data; boundary=\"b", "b"),
    ("multipart/form-data; boundary=b\"", "b"),
    ("multipart/form-data; boundary=\"b c\"", "b c"),
    ("multipart/form-data; boundary=\"b c\"", "b"),
    ("multipart/form-data; boundary=b c", "b c"),
    ("multipart/form-data; boundary=b c", "b"),
    ("multipart/form-data; boundary=b,c", "b"),
    ("multipart/form-data; boundary=b,c", "b,c"),
    ("multipart/form-data; boundary=a; boundary=b", "b"),
    ("multipart/form-data; boundary=b; boundary=a", "b"),
    ("multipart/form-data; boundary=a, boundary=b", "b"),
    ("multipart/form-data; boundary*=utf-8''b", "b"),
    ("multipart/form-data; boundary*0=a; boundary*1=b", "ab"),
    ("multipart/form-data; boundary=a; boundary*=utf-8''b", "b"),
    ("multipart/form-data; boundary*=utf-8''b; boundary=a", "a"),
    ("multipart/form-data; BOUNDARY=b", "b"),
    ("multipart/form-data; boundary =b", "b"),
    ("multipart/form-data; boundary= b", "b"),
    ("multipart/form-data; boundary\t=\tb", "b"),
    ("multipart/form-data;boundary=b", "b"),
    ("multipart/form-data ;boundary=b", "b"),
    ("multipart/form-data boundary=b", "b"),
    ("multipart/form-data, boundary=b", "b"),
    ("multipart/form-data; x=boundary=b", "b"),
    ("multipart/form-data; xboundary=a; boundary=b", "b"),
    ("multipart/form-data; x=\"; boundary=a\"; boundary=b", "b"),
    ("multipart/form-data; x=\"; boundary=a\"; boundary=b", "a"),
    ("multipart/form-data; x=\"\\\"; boundary=a; y=\"; boundary=b", "a"),
    ("multipart/form-data; x=\"\\\"; boundary=a; y=\"; boundary=b", "b"),
    ("multipart/form-data; boundary=\"a\\b\"", "ab"),
    ("multipart/form-data; boundary=\"a\\b\"", "a\\b"),
    ("multipart/form-data; boundary=%62", "b"),
    ("multipart/form-data; boundary=%62", "%62"),
    ("multipart/form-data; boundary=", ""),
    ("multipart/form-data; boundary=\"\"", ""),
    ("multipart/form-data; boundary", "b"),
    ("multipart/form-data", "b"),
    ("multipart/form-data; boundary=--b", "--b"),
    ("multipart/form-data; boundary=--b", "b"),
    ("multipart/form-data; boundary=B", "b"),
    ("multipart/form-data; boundary=b;", "b"),
    ("multipart/form-data; boundary=b; charset=utf-16", "b"),
    ("multipart/form-data; boundary=b; charset=iso-8859-1", "b"),
    ("multipart/form-data; charset=utf-8; boundary=b", "b"),
    ("multipart/mixed; boundary=b", "b"),
    ("multipart/related; boundary=b", "b"),
    ("Multipart/Form-Data; Boundary=\"b\"", "b"),
    ("multipart/form-data; boundary=b=c", "b=c"),
    ("multipart/form-data; boundary=b=c", "b"),
    ("multipart/form-data; boundary=\"b;c\"", "b;c"),
    ("multipart/form-data; boundary=\"b;c\"", "b"),
    ("multipart/form-data; boundary=\"b\"c", "b"),
    ("multipart/form-data; boundary=\"b\"c", "bc"),
    ("multipart/form-data; boundary=b/c:d?e(f)", "b/c:d?e(f)"),
];

fn part(name: &str, value: &str) -> Vec<u8> {
    format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}").into_bytes()
}

/// A part that holds parts.
fn nested(rng: &mut Rng) -> Vec<u8> {
    let name = pick(rng, &["username", "x"]);
    let inner = pick(
        rng,
        &[
            "Content-Disposition: form-data; name=\"username\"\r\n\r\nalice",
            "Content-Disposition: file; filename=\"a\"\r\n\r\nalice",
            "Content-Disposition: attachment; name=\"username\"\r\n\r\nalice",
            "\r\nalice",
        ],
    );
    format!(
        "Content-Disposition: form-data; name=\"{name}\"\r\nContent-Type: multipart/{}; boundary=i\r\n\r\n--i\r\n{inner}\r\n--i--",
        pick(rng, &["mixed", "form-data", "alternative"])
    )
    .into_bytes()
}

/// The part with the name.
fn target(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> Vec<u8> {
    let mut lines = vec![disposition(rng, tricks)];
    let mut value = b"alice".to_vec();
    if once_in(rng, 8) {
        tricks.push("value");
        value = pick(rng, VALUES).as_bytes().to_vec();
    }
    if once_in(rng, 5) {
        tricks.push("part header");
        let (line, coded) = pick(rng, HEADERS);
        let line = match rng.u32(..6) {
            0 => line.replace(": ", ":"),
            1 => line.replace(": ", " : "),
            2 => line.to_lowercase(),
            3 => line.replace(": ", ":\t"),
            _ => line.to_owned(),
        };
        if !coded.is_empty() {
            value = coded.as_bytes().to_vec();
        }
        lines.insert(rng.usize(..=lines.len()), line.into_bytes());
    }
    if once_in(rng, 15) {
        tricks.push("two dispositions");
        let other = pick(
            rng,
            &[
                "Content-Disposition: form-data; name=\"username\"",
                "Content-Disposition: form-data; name=\"x\"",
                "Content-Disposition: attachment",
                "Content-Disposition:",
            ],
        );
        lines.insert(rng.usize(..=lines.len()), other.as_bytes().to_vec());
    }
    let end = if once_in(rng, 12) {
        tricks.push("line ends");
        pick(
            rng,
            &[
                "\n", "\r", "\r\r\n", "\n\r", "\r\n ", " \r\n", "\0\r\n", "\u{85}", "\u{2028}", "\u{b}", "\u{c}",
                "\u{1c}", "\u{1d}",
            ],
        )
    } else {
        "\r\n"
    };
    let blank = if once_in(rng, 12) {
        tricks.push("blank line");
        pick(
            rng,
            &[
                "\n\n",
                "\r\r",
                "\r\n \r\n",
                "\r\n\t\r\n",
                "\n\r\n",
                "\r\n\n",
                "\r\n",
                "\r\n\r\n\r\n",
                "\r\n\0\r\n",
                "\r\n\u{b}\r\n",
                "\r\nx\r\n\r\n",
                "\r\n:\r\n\r\n",
            ],
        )
    } else {
        "\r\n\r\n"
    };
    let mut part = lines.join(end.as_bytes());
    part.extend_from_slice(blank.as_bytes());
    part.extend_from_slice(&value);
    part
}

fn disposition(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> Vec<u8> {
    if once_in(rng, 3) {
        return b"Content-Disposition: form-data; name=\"username\"".to_vec();
    }
    tricks.push("disposition");
    let header = if once_in(rng, 5) { pick(rng, DISPOSITIONS) } else { "Content-Disposition" };
    let colon = if once_in(rng, 6) {
        pick(rng, &[":", " : ", ":\t", ": \t ", " :", ":\u{b}", "=", ":\r\n ", ":\r\n\t", ":\n ", "", ": :"])
    } else {
        ": "
    };
    let kind = if once_in(rng, 5) { pick(rng, KINDS) } else { "form-data" };
    let separator = if once_in(rng, 5) { pick(rng, SEPARATORS) } else { "; " };
    let parameter = parameter(rng);
    let mut line = [header, colon, kind, separator].concat().into_bytes();
    let others = pick(rng, OTHERS);
    match rng.u32(..6) {
        0 => line.extend([&parameter[..], b"; ", others.as_bytes()].concat()),
        1 => line.extend([others.as_bytes(), b"; ", &parameter].concat()),
        _ => line.extend(parameter),
    }
    if once_in(rng, 12) {
        line.extend(pick(rng, &[";", "; ", " ", "\t", ";;", "\0", ",", "; x", "\r\n x", "\"", "\\", "\u{b}"]).bytes());
    }
    line
}

const DISPOSITIONS: &[&str] = &[
    "content-disposition",
    "CONTENT-DISPOSITION",
    "Content-disposition",
    " Content-Disposition",
    "\tContent-Disposition",
    "Content-Disposition ",
    "\0Content-Disposition",
    "Content_Disposition",
    "Content-Disposition\t",
    "X-Content-Disposition",
    "Content-ID",
    "Content-Id",
    "\u{feff}Content-Disposition",
    "Content-Disposition\0",
    "X: y\r\nContent-Disposition",
    "X: y\nContent-Disposition",
    "X: y\rContent-Disposition",
    "X:\r\n Content-Disposition",
    "Content-\r\n Disposition",
    "Content-Type: text/plain\r\nContent-Disposition",
    "\r\nContent-Disposition",
];

const KINDS: &[&str] = &[
    "FORM-DATA",
    "Form-Data",
    "form-data ",
    "form-data\t",
    "attachment",
    "inline",
    "file",
    "",
    "form",
    "form-data,",
    "form_data",
    "\"form-data\"",
    "form-data\0",
    "x",
    "form-data\u{b}",
    " form-data",
];

const SEPARATORS: &[&str] = &[
    ";",
    " ;",
    ";;",
    "; ;",
    ";\t",
    "; \t",
    ",",
    " ",
    ";\r\n ",
    ";\r\n\t",
    ";\n ",
    ";\n",
    ";\r",
    ";\0",
    ";\u{b}",
    ";\u{c}",
    ";\u{a0}",
    ";\u{1f}",
    ";\u{85}",
    "",
    "&",
    ";x;",
    ";x=\"",
    ";x=y ",
    ";\r\n",
    "\t",
    ";\u{feff}",
    ";\\",
];

/// `name="username"` as odd clients write it.
fn parameter(rng: &mut Rng) -> Vec<u8> {
    let name = field_name::name(rng);
    let named = if once_in(rng, 4) { pick(rng, NAMED) } else { "name" };
    let equals = if once_in(rng, 5) { pick(rng, EQUALS) } else { "=" };
    let mut text = [named, equals].concat().into_bytes();
    if named.contains('*') && equals == "=" {
        text.extend(
            pick(rng, &["utf-8''", "UTF-8'en'", "''", "iso-8859-1''", "", "utf-16''", "'", "utf-8'", "us-ascii''"])
                .bytes(),
        );
        text.extend(&name);
        return text;
    }
    let (open, close) = if once_in(rng, 3) { pick(rng, QUOTES) } else { ("\"", "\"") };
    text.extend(open.bytes());
    match rng.u32(..10) {
        0 => text.extend(name.iter().flat_map(|byte| [b'\\', *byte])),
        1 => text.extend(name.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes())),
        2 => text.extend(encoded_word(rng, &name).bytes()),
        _ => text.extend(&name),
    }
    text.extend(close.bytes());
    text
}

/// A word as mail encodes it.
fn encoded_word(rng: &mut Rng, name: &[u8]) -> String {
    let encoded = name.iter().map(|byte| format!("={byte:02X}")).collect::<Vec<_>>().concat();
    match rng.u32(..3) {
        0 => format!("=?utf-8?Q?{encoded}?="),
        1 => format!("=?utf-8?B?{}?=", portcullis::words::base64::encode(name)),
        _ => format!("=?iso-8859-1?q?{}?=", String::from_utf8_lossy(name)),
    }
}

const NAMED: &[&str] = &[
    "NAME",
    "Name",
    "name*",
    "name*0",
    "name*0*",
    "name*1",
    " name",
    "\tname",
    "\0name",
    "name\0",
    "\"name\"",
    "xname",
    "x-name",
    "name ",
    "\u{b}name",
    "\u{feff}name",
    "filename",
    "filename*",
    "n\\ame",
    "\u{a0}name",
    "_name",
    "name\u{1f}",
];

const EQUALS: &[&str] = &[
    "==", " = ", "= ", " =", "\t=", "=\t", "=\0", "\0=", ":", "=\r\n ", "\r\n =", "=\n", "=\u{b}", "=\u{c}", "=\u{a0}",
    "= \"x\" ", "=\\", "*=",
];

const QUOTES: &[(&str, &str)] = &[
    ("", ""),
    ("'", "'"),
    ("\"", ""),
    ("", "\""),
    ("\" ", "\""),
    ("\"", " \""),
    ("\"\"", "\"\""),
    ("\\\"", "\\\""),
    ("\"", "\\\""),
    ("<", ">"),
    ("`", "`"),
    ("\"", "\"x"),
    ("x\"", "\""),
    ("\u{201c}", "\u{201d}"),
    ("", ";"),
    ("\"", "\\"),
    ("\"x\\\"; name=\"", "\""),
];

const OTHERS: &[&str] = &[
    "filename=\"a\"",
    "filename=\"\"",
    "filename=a",
    "filename*=utf-8''a",
    "filename",
    "filename=",
    "name=\"bob\"",
    "name=\"x\"",
    "name=x",
    "name*=utf-8''username",
    "name*=utf-8''x",
    "name*0=\"user\"; name*1=\"name\"",
    "x=\"; name=\\\"username\\\"\"",
    "x=\"a\\\"; name=x; y=\"",
    "filename=\"a\\\"; name=x; y=\"b\"",
    "filename=\"a\\\"; name=\\\"username\"",
    "size=5",
    "x",
    "=",
    "\"x\"",
    "filename=\"\\\\\"",
    "charset=utf-16",
    "x='; name=x; y='",
];

const HEADERS: &[(&str, &str)] = &[
    ("Content-Type: text/plain", ""),
    ("Content-Type: text/plain; charset=utf-8", ""),
    ("Content-Type: text/plain; charset=\"utf-8\"", ""),
    ("Content-Type: text/plain; charset=utf-16le", "a\0l\0i\0c\0e\0"),
    ("Content-Type: text/plain; charset=utf-16", "\0a\0l\0i\0c\0e"),
    ("Content-Type: text/plain; charset=utf-16be", "\0a\0l\0i\0c\0e"),
    ("Content-Type: text/plain; charset=utf-7", "+AGEAbABpAGMAZQ-"),
    ("Content-Type: text/plain; charset=utf-7", "+AGE-lice"),
    ("Content-Type: text/plain; charset=iso-2022-jp", "\u{1b}(Balice"),
    ("Content-Type: text/plain; charset=iso-2022-jp", "a\u{1b}(Blice"),
    ("Content-Type: text/plain; charset=hz", "~{~}alice"),
    ("Content-Type: text/plain; charset=unicode_escape", "\\x61lice"),
    ("Content-Type: text/plain; charset=rot13", "nyvpr"),
    ("Content-Type: text/plain; charset=punycode", "alice-"),
    ("Content-Type: text/plain; charset=idna", "alice"),
    ("Content-Type: text/plain;charset*=utf-16le", "a\0l\0i\0c\0e\0"),
    ("Content-Type: application/json", "\"alice\""),
    ("Content-Type: application/json", "{\"username\":\"alice\"}"),
    ("Content-Type: application/octet-stream", ""),
    ("Content-Type: application/x-www-form-urlencoded", "username=alice"),
    ("Content-Type: text/plain; x=\"", ""),
    ("Content-Type: ", ""),
    (
        "Content-Type: multipart/mixed; boundary=i",
        "--i\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n--i--",
    ),
    ("Content-Transfer-Encoding: base64", "YWxpY2U="),
    ("Content-Transfer-Encoding: base64", "YWxp\r\nY2U="),
    ("Content-Transfer-Encoding: base64", "YWxp=Y2U="),
    ("Content-Transfer-Encoding: base64", "Y!W@x#pY2U="),
    ("Content-Transfer-Encoding: base64", "YWxpY2U"),
    ("Content-Transfer-Encoding: base64", "YWxpY2U=YWxpY2U="),
    ("Content-Transfer-Encoding: base64", "=YWxpY2U="),
    ("Content-Transfer-Encoding: BASE64", "YWxpY2U="),
    ("Content-Transfer-Encoding: base-64", "YWxpY2U="),
    ("Content-Transfer-Encoding: \"base64\"", "YWxpY2U="),
    ("Content-Transfer-Encoding: base64;", "YWxpY2U="),
    ("Content-Transfer-Encoding: b", "YWxpY2U="),
    ("Content-Transfer-Encoding: x-base64", "YWxpY2U="),
    ("Content-Transfer-Encoding: base64 (x)", "YWxpY2U="),
    ("Content-Transfer-Encoding:\r\n base64", "YWxpY2U="),
    ("Content-Transfer-Encoding: base64", "YW\u{e9}xpY2U="),
    ("Content-Transfer-Encoding: base64", "YWxpY2U=\r\n"),
    ("Content-Transfer-Encoding: quoted-printable", "=61lice"),
    ("Content-Transfer-Encoding: quoted-printable", "al=\r\nice"),
    ("Content-Transfer-Encoding: quoted-printable", "al=\nice"),
    ("Content-Transfer-Encoding: quoted-printable", "al= \r\nice"),
    ("Content-Transfer-Encoding: quoted-printable", "=61l=69ce   "),
    ("Content-Transfer-Encoding: quoted-printable", "=61lice="),
    ("Content-Transfer-Encoding: quoted-printable", "=6"),
    ("Content-Transfer-Encoding: quoted_printable", "=61lice"),
    ("Content-Transfer-Encoding: q", "=61lice"),
    ("Content-Transfer-Encoding: uuencode", "begin 644 x\r\n%86QI8V4 \r\n \r\nend\r\n"),
    ("Content-Transfer-Encoding: x-uuencode", "begin 644 x\r\n%86QI8V4 \r\n \r\nend\r\n"),
    ("Content-Transfer-Encoding: 7bit", ""),
    ("Content-Transfer-Encoding: 8bit", ""),
    ("Content-Transfer-Encoding: binary", ""),
    ("Content-Transfer-Encoding: gzip", ""),
    ("Content-Encoding: gzip", ""),
    ("Content-Encoding: deflate", "x\u{9c}K\u{cc}"),
    ("Content-Length: 5", ""),
    ("Content-Length: 3", ""),
    ("Content-Length: 0", ""),
    ("Content-Length: 50", ""),
    ("Content-ID: username", ""),
    ("Content-ID: <username>", ""),
    ("Content-Description: x", ""),
    ("X", ""),
    ("X: y\r\n z: w", ""),
    (": x", ""),
    ("\u{e9}: x", ""),
    ("X: \0", ""),
];

const VALUES: &[&str] = &[
    "Alice",
    " alice",
    "alice ",
    "alice\r\n",
    "\r\nalice",
    "alice\0",
    "\0alice",
    "alice\n",
    "\nalice",
    "alice\r",
    "alice\r\n--",
    "alice--",
    "alice\r\n--x\r\n",
    "bob\r\n--c\r\nalice",
    "al\r\nice",
    "\u{feff}alice",
    "alice\u{200b}",
    "--\r\nalice",
    "alice\u{a0}",
    "\u{ff41}lice",
    "",
    "alice&username=bob",
    "{\"username\":\"alice\"}",
];

fn assembled(rng: &mut Rng, boundary: &str, parts: &[Vec<u8>], tricks: &mut Vec<&'static str>) -> Vec<u8> {
    let mut text = Vec::new();
    let is_odd = once_in(rng, 5);
    if is_odd {
        tricks.push("delimiters");
    }
    let odd = |rng: &mut Rng, usual: &'static str, from: &[&'static str]| {
        if is_odd && once_in(rng, 3) { pick(rng, from) } else { usual }
    };
    text.extend(odd(rng, "", PREAMBLES).bytes());
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.extend(
                odd(rng, "\r\n", &["\n", "\r", "", "\r\n\r\n", "\r\n ", "\r\r\n", "\n\r", " \r\n", "\r\n\t", "\0\r\n"])
                    .bytes(),
            );
        }
        text.extend(odd(rng, "--", &["-", "---", "", " --", "- -", "--\0", "\0--", "----"]).bytes());
        if is_odd && once_in(rng, 8) {
            let other = match rng.u32(..5) {
                0 => boundary.to_uppercase(),
                1 => format!("{boundary}x"),
                2 => format!("{boundary}--"),
                3 => format!("\"{boundary}\""),
                _ => boundary.chars().skip(1).collect(),
            };
            text.extend(other.bytes());
        } else {
            text.extend(boundary.bytes());
        }
        text.extend(
            odd(
                rng,
                "\r\n",
                &[
                    " \r\n",
                    "\t\r\n",
                    "\n",
                    "\r",
                    "x\r\n",
                    "--\r\n",
                    "-\r\n",
                    "\r\n\r\n",
                    "",
                    " ",
                    "\0\r\n",
                    ";x\r\n",
                    " x\r\n",
                    "\u{b}\r\n",
                    "\r\r\n",
                    "\n\n",
                ],
            )
            .bytes(),
        );
        text.extend(part);
    }
    text.extend(odd(rng, "\r\n--", &["\n--", "\r--", "--", "\r\n", "\r\n-", ""]).bytes());
    text.extend(boundary.bytes());
    text.extend(
        odd(rng, "--\r\n", &["--", "", "-", "-- ", "--\n", "--x", "\r\n", " --\r\n", "--\r\n\r\n", "--\0"]).bytes(),
    );
    if is_odd && once_in(rng, 3) {
        let part = "Content-Disposition: form-data; name=\"username\"\r\n\r\nalice";
        text.extend(
            match rng.u32(..4) {
                0 => format!("--{boundary}\r\n{part}\r\n--{boundary}--\r\n"),
                1 => format!("\r\n--{boundary}\r\n{part}\r\n--{boundary}--\r\n"),
                2 => format!("--{boundary}\r\n{part}"),
                _ => "username=alice&\r\n".to_owned(),
            }
            .bytes(),
        );
    }
    text
}

const PREAMBLES: &[&str] = &[
    "\r\n",
    "\n",
    " ",
    "x",
    "preamble\r\n",
    "\0",
    "--\r\n",
    "username=bob&\r\n",
    "\u{feff}",
    "--x\r\n\r\n",
    "{\"username\":\"bob\"}\r\n",
    "Content-Disposition: form-data; name=\"username\"\r\n\r\nbob\r\n",
    "--b",
    "-",
    "\r\n\r\n",
    "\t\r\n",
];

const TOKENS: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\"",
    "\\",
    ";",
    "=",
    ":",
    "--",
    "--b",
    "--b\r\n",
    "--b--",
    " ",
    "\t",
    "name",
    "name=\"username\"",
    "name=\"x\"",
    "filename=\"x\"",
    "Content-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n",
    "Content-Disposition: form-data; name=\"username\"\r\n\r\nbob\r\n",
    "Content-Type: text/plain; charset=utf-16\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "&username=alice&",
    "%22",
    "%0d%0a",
    "\u{b}",
    "\u{c}",
    "\u{1c}",
    "\u{85}",
    "\u{a0}",
    "\u{feff}",
    "*",
    "'",
    "Content-Disposition",
    "form-data",
    "alice",
    "username",
    "<",
    "{",
];
