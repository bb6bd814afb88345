//! The fuzz target of this parser.

use super::InvalidProxyHeader;
use super::ProxyHeader;
use super::ProxyHeaderReader;
use crate::corpus;

/// A header means the same however it arrives, and takes no byte of what follows it.
pub fn check(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        corpus::same_for_every_split(bytes, |reads| {
            let (mut reader, mut taken) = (ProxyHeaderReader::default(), 0);
            for arrived in reads {
                let (length, header) = reader.take(arrived)?;
                taken += length;
                if header.is_some() {
                    return Ok((taken, header));
                }
            }
            Ok::<(usize, Option<ProxyHeader>), InvalidProxyHeader>((taken, None))
        })
    };
    let outcome = read(bytes);
    let Ok((length, header)) = outcome else { return };
    assert!(length <= bytes.len() && (header.is_some() || length == bytes.len()));
    if header.is_some() {
        assert_eq!(read(&bytes[..length]), outcome, "it depends on what follows it");
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("proxy_header", check);
}
