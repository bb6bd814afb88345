//! What the head says of a body: its type and its encoding.

use fastrand::Rng;

use super::{deflate, gzip, once_in, pick, utf16, utf32, zlib};
use crate::case::Case;

/// A case with this body. `plain` is the type that clients declare.
pub(super) fn body(rng: &mut Rng, plain: &str, body: Vec<u8>, mut tricks: Vec<&'static str>) -> Case {
    let mut lines: Vec<(&'static str, Vec<u8>)> = Vec::new();
    if once_in(rng, 3) {
        tricks.push("type");
        let (media, parameters) = plain.split_once(';').unwrap_or((plain, ""));
        for _ in 0..if once_in(rng, 6) { 2 } else { 1 } {
            lines.push((
                pick(rng, &["Content-Type", "Content-Type", "content-type", "CONTENT-TYPE"]),
                content_type(rng, media, parameters),
            ));
        }
        if once_in(rng, 20) {
            lines.clear();
        }
        if once_in(rng, 20) {
            let other = pick(rng, &["Content_Type", "Content-type ", "X-Content-Type", "Content-Type-Options"]);
            lines.push((other.trim(), plain.as_bytes().to_vec()));
        }
    } else {
        lines.push(("Content-Type", plain.as_bytes().to_vec()));
    }
    let body = encoded(rng, body, &mut lines, &mut tricks);
    if once_in(rng, 40) {
        tricks.push("header");
        let (name, value) = pick(rng, HEADERS);
        lines.push((name, value.as_bytes().to_vec()));
    }
    Case { query: Vec::new(), lines, body, tricks }
}

const HEADERS: &[(&str, &str)] = &[
    ("Content-Transfer-Encoding", "base64"),
    ("Content-Disposition", "form-data; name=\"username\""),
    ("Content-Language", "de"),
    ("Accept-Charset", "utf-16"),
    ("Content-Range", "bytes 0-5/6"),
    ("Content-Charset", "utf-16"),
    ("X-HTTP-Method-Override", "PUT"),
];

fn encoded(
    rng: &mut Rng,
    body: Vec<u8>,
    lines: &mut Vec<(&'static str, Vec<u8>)>,
    tricks: &mut Vec<&'static str>,
) -> Vec<u8> {
    if once_in(rng, 25) {
        tricks.push("encoding");
        let (named, coded) = match rng.u32(..8) {
            0 => ("gzip", gzip(&body)),
            1 => ("x-gzip", gzip(&body)),
            2 => ("deflate", zlib(&body)),
            3 => ("deflate", deflate(&body)),
            4 => ("gzip, deflate", zlib(&gzip(&body))),
            5 => ("identity", body.clone()),
            6 => ("GZip", [gzip(b"username=bob&"), gzip(&body)].concat()),
            _ => (pick(rng, &["gzip", "br", "deflate", "utf-8", "", "aws-chunked", "compress", "zstd"]), body.clone()),
        };
        if !once_in(rng, 5) {
            lines.push(("Content-Encoding", named.as_bytes().to_vec()));
        }
        return coded;
    }
    if once_in(rng, 40) {
        tricks.push("wide");
        return match rng.u32(..8) {
            0 => [b"\xff\xfe", &utf16(&body, true)[..]].concat(),
            1 => [b"\xfe\xff", &utf16(&body, false)[..]].concat(),
            2 => utf16(&body, true),
            3 => utf16(&body, false),
            4 => [b"\xff\xfe\0\0", &utf32(&body, true)[..]].concat(),
            5 => [b"\0\0\xfe\xff", &utf32(&body, false)[..]].concat(),
            6 => utf32(&body, true),
            _ => utf32(&body, false),
        };
    }
    if once_in(rng, 30) {
        tricks.push("begins");
        let before =
            pick(rng, &["\u{feff}", " ", "\r\n", "\n", "\0", "?", "&", "\t", "\u{a0}", "\u{b}", "#", "=", ")]}'\n"]);
        return [before.as_bytes(), &body].concat();
    }
    body
}

/// A type as odd clients write it, with the parameters of the plain one or others.
pub(super) fn content_type(rng: &mut Rng, media: &str, parameters: &str) -> Vec<u8> {
    let mut text = match rng.u32(..8) {
        0 => media.to_uppercase(),
        1 => pick(rng, TYPES).to_owned(),
        2 => format!(
            "{}{media}",
            pick(rng, &[" ", "\t", "text/plain, ", "text/plain; ", "x", ";", ",", "\"", "application/json,"])
        ),
        3 => format!(
            "{media}{}",
            pick(rng, &[" ", "\t", ",", ", text/plain", "x", "+json", "\"", "/", " x", ", application/json", "\u{a0}"])
        ),
        _ => media.to_owned(),
    };
    let mut added: Vec<String> = Vec::new();
    for _ in 0..rng.usize(..=2) {
        let name = pick(
            rng,
            &["charset", "charset", "Charset", "charset ", "charset*", "charset*0", "x", "_charset_", "encoding"],
        );
        let value = pick(rng, CHARSETS);
        let quote = pick(rng, &["", "", "\"", "'"]);
        added.push(format!("{name}={quote}{value}{quote}"));
    }
    if !parameters.is_empty() {
        added.insert(rng.usize(..=added.len()), parameters.trim().to_owned());
        if once_in(rng, 6) {
            added.push(parameters.trim().to_owned());
        }
    }
    if once_in(rng, 15) {
        added.extend((0..rng.usize(1..12)).map(|number| format!("p{number}=x")));
    }
    if once_in(rng, 15) {
        added.push("x=\"; charset=utf-16; \"".to_owned());
    }
    for parameter in added {
        text.push_str(pick(rng, &["; ", "; ", ";", " ;", ";;", ", ", " ", ";\t", "; ;"]));
        text.push_str(&parameter);
    }
    if once_in(rng, 10) {
        text.push_str(pick(rng, &[";", " ;", "; ", ";x", ";=", ";charset"]));
    }
    text.into_bytes()
}

const TYPES: &[&str] = &[
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/mixed",
    "multipart/related",
    "multipart/alternative",
    "multipart/form-data2",
    "application/json",
    "text/json",
    "application/vnd.api+json",
    "application/problem+json",
    "application/ld+json",
    "application/x-json",
    "application/javascript",
    "text/javascript",
    "text/plain",
    "text/html",
    "text/xml",
    "application/xml",
    "application/octet-stream",
    "application/x-www-form-urlencoded-v2",
    "application/x-url-encoded",
    "*/*",
    "",
    "json",
    "urlencoded",
    "application/csp-report",
    "application/jsonrequest",
    "application/json-seq",
    "application/x-ndjson",
    "text/x-json",
    "image/png",
];

const CHARSETS: &[&str] = &[
    "utf-8",
    "UTF-8",
    "utf8",
    "iso-8859-1",
    "latin1",
    "us-ascii",
    "windows-1252",
    "utf-16",
    "utf-16le",
    "utf-16be",
    "utf-32",
    "utf-7",
    "ibm037",
    "cp037",
    "cp500",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "iso-2022-kr",
    "gb18030",
    "big5",
    "hz",
    "koi8-r",
    "utf-8-sig",
    "unicode_escape",
    "raw_unicode_escape",
    "rot13",
    "rot_13",
    "base64",
    "hex",
    "quopri",
    "uu",
    "zip",
    "idna",
    "punycode",
    "x",
    "",
    "cesu-8",
    "utf8mb4",
    "binary",
    "ebcdic",
    "%75tf-16",
];
