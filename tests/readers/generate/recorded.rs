//! What real clients were recorded to send, with another name in front and a mutation or two.

use std::sync::LazyLock;

use fastrand::Rng;
use memchr::memmem;

use super::{mutate, once_in, pick};
use crate::case::Case;
use crate::clients;

/// Types and bodies.
static SENT: LazyLock<Vec<(Vec<u8>, Vec<u8>)>> = LazyLock::new(|| {
    let typed = |request: Vec<u8>| {
        let end = memmem::find(&request, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-type:"))?;
        let body = request[end + 4..].to_vec();
        Some((line["content-type:".len()..].trim().as_bytes().to_vec(), replaced(body, NAMES, b"alice")))
    };
    clients::recorded().into_values().filter_map(typed).collect()
});

/// The name as clients wrote it.
const NAMES: &[&[u8]] = &[
    "Zoë O'Neil".as_bytes(),
    b"Zo\\u00eb O'Neil",
    b"Zo%C3%AB+O%27Neil",
    b"Zo%C3%AB%20O'Neil",
    b"Zo%C3%AB+O'Neil",
    b"Zo%C3%AB%20O%27Neil",
];

/// A request whose type contains this word.
pub(super) fn case(rng: &mut Rng, word: &'static str, tokens: &[&str]) -> Case {
    let fitting: Vec<_> = SENT.iter().filter(|(line, _)| memmem::find(line, word.as_bytes()).is_some()).collect();
    let (line, body) = pick(rng, &fitting);
    let (mut line, mut body) = (line.clone(), body.clone());
    if !once_in(rng, 4) {
        // Another name comes first.
        let other = replaced(body.clone(), &[b"alice"], b"bob");
        let end = match word {
            "multipart" => memmem::rfind(&other, b"\r\n--").map_or(0, |at| at + 2),
            "json" => {
                body[0] = b',';
                other.iter().rposition(|byte| *byte == b'}').unwrap_or_default()
            }
            _ => {
                body.insert(0, b'&');
                other.len()
            }
        };
        body = [&other[..end], &body].concat();
    }
    let mut tricks = vec!["recorded"];
    for _ in 0..rng.usize(..3) {
        if once_in(rng, 5) {
            tricks.push("type");
            mutate::once(rng, &mut line, tokens);
        } else {
            tricks.push("mutated");
            mutate::once(rng, &mut body, tokens);
        }
    }
    Case { query: Vec::new(), lines: vec![("Content-Type", line)], body, tricks }
}

fn replaced(mut text: Vec<u8>, all: &[&[u8]], with: &[u8]) -> Vec<u8> {
    for one in all {
        while let Some(at) = memmem::find(&text, one) {
            text.splice(at..at + one.len(), with.iter().copied());
        }
    }
    text
}
