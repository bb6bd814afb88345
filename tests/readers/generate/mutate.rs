//! Mutations of bytes: some are dropped, doubled, moved or replaced, or a token is put in.

use fastrand::Rng;

use super::pick;

pub(super) fn bytes(rng: &mut Rng, text: &mut Vec<u8>, tokens: &[&str]) {
    for _ in 0..pick(rng, &[1, 1, 1, 2, 2, 3, 4]) {
        once(rng, text, tokens);
    }
}

pub(super) fn once(rng: &mut Rng, text: &mut Vec<u8>, tokens: &[&str]) {
    let at = rng.usize(..=text.len());
    let longest = pick(rng, &[1, 2, 4, 12, 100]);
    let end = (at + rng.usize(..=longest)).min(text.len());
    match rng.u32(..8) {
        0 => drop(text.drain(at..end)),
        1 => {
            let piece = text[at..end].to_vec();
            text.splice(at..at, piece);
        }
        2 => {
            let piece: Vec<u8> = text.drain(at..end).collect();
            let to = rng.usize(..=text.len());
            text.splice(to..to, piece);
        }
        3 if at < text.len() => text[at] = rng.u8(..),
        4 if at < text.len() => text[at] ^= 1 << rng.u32(..8),
        5 if at < text.len() => text[at] = pick(rng, b"\0\t\n\r \"'\\%&;=:,-[]{}<>#?*+./\x1f\x7f\xa0"),
        _ => drop(text.splice(at..at, pick(rng, tokens).bytes())),
    }
}
