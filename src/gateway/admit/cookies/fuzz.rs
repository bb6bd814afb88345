//! The fuzz target of this parser.

use http::HeaderMap;
use http::HeaderValue;
use http::header::COOKIE;

use super::MOST;
use super::take;
#[cfg(test)]
use crate::corpus;

/// Cookies of our name are gone afterwards, and all others are still there in their order.
pub fn check(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = HeaderValue::from_bytes(line) else { return };
        headers.append(COOKIE, line);
    }
    let before = others(&headers);
    let taken = take(&mut headers, NAME);
    assert!(taken.len() <= MOST, "{} cookies", taken.len());
    assert_eq!(others(&headers), before);
    assert!(take(&mut headers, NAME).is_empty(), "one was left");
}

/// Every pair that is not ours.
fn others(headers: &HeaderMap) -> Vec<Vec<u8>> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
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
