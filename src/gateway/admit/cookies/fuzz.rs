//! The fuzz target of this parser.

use http::HeaderValue;

use super::MOST;
use super::take;
#[cfg(test)]
use crate::corpus;
use crate::head::Fields;
use crate::head::KnownName;

/// Cookies of our name are gone afterwards, and all others are still there in their order.
pub fn check(bytes: &[u8]) {
    let mut fields = Fields::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = HeaderValue::from_bytes(line) else { return };
        fields.append(KnownName::COOKIE, line.as_bytes().trim_ascii());
    }
    let before = others(&fields);
    let taken = take(&mut fields, NAME);
    assert!(taken.len() <= MOST, "{} cookies", taken.len());
    assert_eq!(others(&fields), before);
    assert!(take(&mut fields, NAME).is_empty(), "one was left");
}

/// Every pair that is not ours.
fn others(fields: &Fields) -> Vec<Vec<u8>> {
    let lines = fields.get_all(KnownName::COOKIE);
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
    let is_ours = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=');
        equals.is_some_and(|equals| pair[..equals].trim_ascii() == NAME.as_bytes())
    };
    pairs.filter(|pair| !pair.is_empty() && !is_ours(pair)).map(<[u8]>::to_vec).collect()
}

const NAME: &str = "ours";

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("cookies", check);
}
