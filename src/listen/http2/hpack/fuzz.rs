//! The fuzz target of this parser.

use super::HpackDecoder;
use super::error::InvalidHpack;
use crate::corpus;

/// Blocks of fields mean the same however they are cut into frames, and every field costs the client a byte.
pub fn check(bytes: &[u8]) {
    let fields = corpus::same_for_every_split(bytes, |reads| {
        let mut decoder = HpackDecoder::new(0);
        let (mut fields, mut pending) = (Vec::new(), Vec::new());
        for read in reads {
            pending.extend_from_slice(read);
            let mut rest = &pending[..];
            decoder.decode(&mut rest, |field| fields.push(field))?;
            pending = rest.to_vec();
        }
        Ok::<_, InvalidHpack>((fields, pending))
    });
    if let Ok((fields, _)) = fields {
        assert!(fields.len() <= bytes.len(), "{} fields of {} bytes", fields.len(), bytes.len());
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("hpack", check);
}
