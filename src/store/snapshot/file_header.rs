//! The first bytes of a snapshot on disk: which version of the format it has, and the salt of its checksums.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use super::frame::Salt;

/// The first bytes of every version, followed by the number of the version and the end of the line.
const NAME: &[u8] = b"portcullis state ";

/// The version that is one state after the other, in frames.
pub(super) const VERSION: u32 = 2;

/// The whole length of a header of this version.
pub(super) const LENGTH: usize = NAME.len() + 2 + 16 + 8;

/// The version of a file, and what follows it; `None`: it is no snapshot.
pub(super) fn version(file: &[u8]) -> Option<(u32, &[u8])> {
    let rest = file.strip_prefix(NAME)?;
    let end = rest.iter().take(MOST_DIGITS + 1).position(|byte| *byte == b'\n')?;
    let digits = rest[..end].iter().all(u8::is_ascii_digit);
    let number = digits.then(|| str::from_utf8(&rest[..end]).ok()?.parse().ok()).flatten()?;
    Some((number, &rest[end + 1..]))
}

/// No version has more.
const MOST_DIGITS: usize = 9;

/// A header of this version.
pub(super) fn write(salt: Salt) -> Vec<u8> {
    let mut bytes = [NAME, VERSION.to_string().as_bytes(), b"\n", &salt.0].concat();
    bytes.extend_from_slice(&checksum(&salt.0).to_le_bytes());
    bytes
}

/// The salt behind the version; `None`: it is damaged.
pub(super) fn read_salt(rest: &[u8]) -> Option<Salt> {
    let (salt, rest) = rest.split_first_chunk::<16>()?;
    let (sum, _) = rest.split_first_chunk::<8>()?;
    (checksum(salt) == u64::from_le_bytes(*sum)).then_some(Salt(*salt))
}

/// Detects damage, not forgery: a person who can write the file can write the checksum too.
pub(super) fn checksum(payload: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(b"portcullis-state");
    hasher.write(payload);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_file_is_read() {
        let header = write(Salt([7; 16]));
        assert_eq!(header.len(), LENGTH);
        let (number, rest) = version(&header).expect("a header");
        assert_eq!((number, read_salt(rest)), (VERSION, Some(Salt([7; 16]))));
        assert_eq!(version(b"portcullis state 1\nabc"), Some((1, &b"abc"[..])));
        assert_eq!(version(b"portcullis state 123\n"), Some((123, &b""[..])));
        for other in [&b""[..], b"portcullis state 2", b"portcullis state +2\n", b"portcullis state \n", b"a log\n"] {
            assert_eq!(version(other), None);
        }
        for place in LENGTH - 24..LENGTH {
            let mut damaged = header.clone();
            damaged[place] ^= 1;
            assert_eq!(version(&damaged).and_then(|(_, rest)| read_salt(rest)), None, "{place}");
        }
    }
}
