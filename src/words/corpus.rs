//! Feeds the fuzz target of a parser with its corpus, on any compiler: each file whole, cut short, and changed at random.

use std::fmt::Debug;
#[cfg(test)]
use std::fs;
#[cfg(test)]
use std::panic;
#[cfg(test)]
use std::path::Path;

/// Calls `parse` with the bytes in one read, in two reads for many places of the cut, and in a read for each byte. All
/// calls must return the same value, which is returned.
#[track_caller]
pub fn same_for_every_split<T: Debug + PartialEq>(bytes: &[u8], mut parse: impl FnMut(&[&[u8]]) -> T) -> T {
    let whole = parse(&[bytes]);
    for cut in places(bytes.len()) {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(parse(&[first, second]), whole, "cut at {cut}");
    }
    assert_eq!(parse(&bytes.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
    whole
}

/// Where to cut `length` bytes: everywhere, or, if that would take too long, at evenly spaced places.
pub fn places(length: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(length / MOST_PLACES + 1)
}

/// So many places are enough to find a parser that forgets what it has seen, and few enough to fuzz with.
const MOST_PLACES: usize = 64;

/// Calls the target with every file of its corpus, with beginnings of the file, and with random changes of it. The
/// changes are the same in every run.
#[cfg(test)]
#[track_caller]
pub fn feed(target: &str, check: fn(&[u8])) {
    let files = files(target);
    let mut random = fastrand::Rng::with_seed(SEED);
    for file in &files {
        call(check, file);
        places(file.len()).for_each(|length| call(check, &file[..length]));
        for _ in 0..CHANGED {
            let other = &files[random.usize(..files.len())];
            call(check, &changed(file, other, &mut random));
        }
    }
}

#[cfg(test)]
fn files(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| fs::read(path).expect("a file of the corpus can be read")).collect()
}

/// One to four changes: a byte replaced, a few bytes removed or repeated, or a part of another file inserted.
#[cfg(test)]
fn changed(file: &[u8], other: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(..=bytes.len());
        let end = bytes.len().min(at + random.usize(..16));
        match random.u8(..5) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => bytes[at] = *random.choice(TELLING).expect("not empty"),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => {
                let start = random.usize(..=other.len());
                let end = other.len().min(start + random.usize(..64));
                bytes.splice(at..at, other[start..end].iter().copied());
            }
        }
    }
    bytes
}

/// Bytes that mean something to one of the parsers.
#[cfg(test)]
const TELLING: &[u8] = b"\0\t\r\n \"$&'*+,-/0:;<=?[\\]{}\x7f\x80\xff";

#[cfg(test)]
fn call(check: fn(&[u8]), bytes: &[u8]) {
    if let Err(cause) = panic::catch_unwind(|| check(bytes)) {
        let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
        panic!("{}\nafter b\"{}\"", text.unwrap_or_default(), bytes.escape_ascii());
    }
}

#[cfg(test)]
const SEED: u64 = 7;

/// For each file of a corpus.
#[cfg(test)]
const CHANGED: usize = 200;
