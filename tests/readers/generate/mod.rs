//! Requests that some reader may read in another way than the gateway: what clients write, with a few tricks each, and
//! mutations of that.

mod basic;
mod cookie;
mod field_name;
mod form;
mod json;
mod multipart;
mod mutate;
mod recorded;
mod typed;

use fastrand::Rng;

use crate::case::Case;
use crate::charged;

/// What the cases of a kind have in common.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    generate: fn(&mut Rng) -> Case,
    /// Where the readers may read the name.
    sources: &'static [&'static str],
    /// The fields that they look for.
    names: &'static [&'static str],
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind { name: "form", generate: form::body, sources: BODIES, names: FIELDS },
    Kind { name: "multipart", generate: multipart::body, sources: BODIES, names: FIELDS },
    Kind { name: "json", generate: json::body, sources: BODIES, names: FIELDS },
    Kind { name: "query", generate: form::query, sources: &["query", "param"], names: FIELDS },
    Kind { name: "cookie", generate: cookie::header, sources: &["cookie"], names: &["sid"] },
    Kind { name: "basic", generate: basic::header, sources: &["basic"], names: &["user"] },
];

const BODIES: &[&str] = &["form", "json", "param"];

const FIELDS: &[&str] = &["username", "user_name", "user[name]", "user.name"];

impl Kind {
    /// The case with this number: always the same.
    pub(crate) fn case(&self, number: u64) -> Case {
        let mut rng = Rng::with_seed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.name.len() as u64);
        (self.generate)(&mut rng)
    }

    /// The selectors that the cases may try to slip past.
    pub(crate) fn selectors(&self) -> Vec<String> {
        let names = self.names.iter();
        let mut selectors: Vec<_> =
            names.flat_map(|name| self.sources.iter().flat_map(|source| charged::selectors(source, name))).collect();
        selectors.sort();
        selectors.dedup();
        selectors
    }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

/// True once in `of` times.
fn once_in(rng: &mut Rng, of: u32) -> bool {
    rng.u32(..of) == 0
}

/// A tool that compresses what it is given.
fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("it writes to memory");
    encoder.finish().expect("it writes to memory")
}

fn zlib(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("it writes to memory");
    encoder.finish().expect("it writes to memory")
}

fn deflate(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("it writes to memory");
    encoder.finish().expect("it writes to memory")
}

fn utf16(text: &[u8], little: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
}

fn utf32(text: &[u8], little: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.chars()
        .flat_map(|char| if little { (char as u32).to_le_bytes() } else { (char as u32).to_be_bytes() })
        .collect()
}
