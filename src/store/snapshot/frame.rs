//! The frames that the file consists of after its header. Each says its length and has checksums, so that one that is torn
//! or damaged is found, and those behind it are too.

use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

use crate::rules::key::KeyHash;
use crate::store::bans::BanId;
use crate::store::bans::codec::SavedBan;
use crate::store::key_ring::random_bytes;
use crate::store::sessions::codec::KnownSession;
use crate::words::clock::Timestamp;

/// The length of the payload, a checksum of the length, and one of the payload.
const HEAD: usize = 4 + 4 + 8;

/// What the checksums of one file depend on. It is random, so that neither a text in a frame nor a part of an earlier file
/// passes for a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Salt(pub(super) [u8; 16]);

/// What stands at a place of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part<'f> {
    Frame(&'f [u8]),
    /// This many bytes are no frame, and a frame follows.
    Damaged(usize),
    /// This many bytes are no frame, and the file ends.
    Torn(usize),
}

/// Reads the parts of a file, from an offset to its end.
#[derive(Debug)]
pub(super) struct Parts<'f> {
    salt: Salt,
    file: &'f [u8],
    offset: usize,
}

impl Salt {
    pub(super) fn random() -> Self {
        Self(random_bytes())
    }

    /// Appends a frame that is to stand at this offset of the file.
    pub(super) fn write_frame(self, offset: u64, payload: &[u8], to: &mut Vec<u8>) {
        // A payload is a few records longer than a frame should be.
        let length = u32::try_from(payload.len()).expect("records are short");
        to.extend_from_slice(&length.to_le_bytes());
        to.extend_from_slice(&self.check_of_length(offset, length).to_le_bytes());
        to.extend_from_slice(&self.check_of_payload(offset, payload).to_le_bytes());
        to.extend_from_slice(payload);
    }

    /// The payload of the frame at this offset, if there is a whole one.
    fn read_frame(self, file: &[u8], offset: usize) -> Option<&[u8]> {
        let (length, rest) = file.get(offset..)?.split_first_chunk::<4>()?;
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let (sum, rest) = rest.split_first_chunk::<8>()?;
        let (length, offset) = (u32::from_le_bytes(*length), offset as u64);
        if self.check_of_length(offset, length) != u32::from_le_bytes(*check) {
            return None;
        }
        let payload = rest.get(..length as usize)?;
        (self.check_of_payload(offset, payload) == u64::from_le_bytes(*sum)).then_some(payload)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
    fn check_of_length(self, offset: u64, length: u32) -> u32 {
        let mut hasher = self.hasher(offset);
        hasher.write(&length.to_le_bytes());
        hasher.finish() as u32
    }

    fn check_of_payload(self, offset: u64, payload: &[u8]) -> u64 {
        let mut hasher = self.hasher(offset);
        hasher.write(payload);
        hasher.finish()
    }

    fn hasher(self, offset: u64) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&offset.to_le_bytes());
        hasher
    }
}

impl<'f> Parts<'f> {
    pub(super) fn new(salt: Salt, file: &'f [u8], offset: usize) -> Self {
        Self { salt, file, offset }
    }
}

impl<'f> Iterator for Parts<'f> {
    type Item = Part<'f>;

    fn next(&mut self) -> Option<Part<'f>> {
        let Self { salt, file, offset } = *self;
        if offset >= file.len() {
            return None;
        }
        if let Some(payload) = salt.read_frame(file, offset) {
            self.offset += HEAD + payload.len();
            return Some(Part::Frame(payload));
        }
        let next = (offset + 1..file.len()).find(|next| salt.read_frame(file, *next).is_some());
        self.offset = next.unwrap_or(file.len());
        let bytes = self.offset - offset;
        Some(if next.is_some() { Part::Damaged(bytes) } else { Part::Torn(bytes) })
    }
}

// The first bytes of a snapshot on disk: which version of the format it has, and the salt of its checksums.

/// The first bytes of every version, followed by the number of the version and the end of the line.
const NAME: &[u8] = b"portcullis state ";

/// The version that is one state after the other, in frames.
pub(super) const VERSION: u32 = 2;

/// The whole length of a header of this version.
pub(super) const LENGTH: usize = NAME.len() + 2 + 16 + 8;

/// No version has more.
const MOST_DIGITS: usize = 9;

/// The version of a file, and what follows it; `None`: it is no snapshot.
pub(super) fn version(file: &[u8]) -> Option<(u32, &[u8])> {
    let rest = file.strip_prefix(NAME)?;
    let end = rest.iter().take(MOST_DIGITS + 1).position(|byte| *byte == b'\n')?;
    let digits = rest[..end].iter().all(u8::is_ascii_digit);
    let number = digits.then(|| str::from_utf8(&rest[..end]).ok()?.parse().ok()).flatten()?;
    Some((number, &rest[end + 1..]))
}

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

// What a snapshot on disk says: one state or one change after the other.

/// One state or one change. Each says what is, not what happened, so that a later one about the same thing replaces it,
/// and one that is read twice changes nothing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Record {
    /// The secret that keys are hashed with.
    Secret([u8; 16]),
    /// All keys that are signed with, and when each was made.
    Seeds(Vec<(Timestamp, [u8; 32])>),
    Ban(BanId, SavedBan),
    /// The ban was lifted, or has made way for others.
    NoBan(BanId),
    /// All known clients of a subject, the latest first, and until when each is known. It is the latest subject so far.
    KnownClients(KeyHash, Vec<(u64, Timestamp)>),
    Session(KnownSession),
    /// The session was ended, or has made way for others.
    NoSession(KeyHash),
    /// Everything before this is the whole state, and everything after it has changed since.
    Whole,
}

impl Record {
    pub(super) fn write(&self, payload: &mut Vec<u8>) {
        let written = postcard::to_extend(self, std::mem::take(payload));
        *payload = written.expect("every record can be written");
    }

    /// Reads the records of a frame; `None`: they are of another version.
    pub(super) fn read_all(mut payload: &[u8]) -> Option<Vec<Self>> {
        let mut records = Vec::new();
        while !payload.is_empty() {
            let (record, rest) = postcard::take_from_bytes(payload).ok()?;
            records.push(record);
            payload = rest;
        }
        Some(records)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

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

    const SALT: Salt = Salt(*b"sixteen of salt.");

    fn file(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut file = b"head".to_vec();
        for payload in payloads {
            SALT.write_frame(file.len() as u64, payload, &mut file);
        }
        file
    }

    fn parts(file: &[u8]) -> Vec<Part<'_>> {
        Parts::new(SALT, file, 4).collect()
    }

    proptest! {
        #[test]
        fn a_file_that_is_cut_has_its_first_frames_and_a_torn_end(payloads in vec(vec(any::<u8>(), 0..20), 0..6)) {
            let whole = file(&payloads);
            for cut in 4..=whole.len() {
                let mut expected = Vec::new();
                let mut end = 4;
                for payload in payloads.iter().take_while(|payload| { end += HEAD + payload.len(); end <= cut }) {
                    expected.push(Part::Frame(payload));
                }
                let kept: usize = expected.len();
                let kept = 4 + payloads[..kept].iter().map(|payload| HEAD + payload.len()).sum::<usize>();
                if kept < cut {
                    expected.push(Part::Torn(cut - kept));
                }
                prop_assert_eq!(parts(&whole[..cut]), expected);
            }
        }

        #[test]
        fn a_frame_that_is_damaged_hides_no_other(payloads in vec(vec(any::<u8>(), 0..20), 1..6), at: prop::sample::Index, bit in 0..8_u32) {
            let mut damaged = file(&payloads);
            let place = 4 + at.index(damaged.len() - 4);
            damaged[place] ^= 1_u8 << bit;
            let (mut expected, mut begin) = (Vec::new(), 4);
            for (number, payload) in payloads.iter().enumerate() {
                let end = begin + HEAD + payload.len();
                expected.push(match (begin..end).contains(&place) {
                    true if number + 1 == payloads.len() => Part::Torn(end - begin),
                    true => Part::Damaged(end - begin),
                    false => Part::Frame(payload),
                });
                begin = end;
            }
            prop_assert_eq!(parts(&damaged), expected);
        }
    }

    #[test]
    fn a_frame_is_one_only_in_its_place_in_its_file() {
        let inner = file(&[b"forged".to_vec()]);
        let mut outer = file(&[inner[4..].to_vec(), b"next".to_vec()]);
        outer[4] ^= 1;
        assert_eq!(parts(&outer), [Part::Damaged(2 * HEAD + 6), Part::Frame(b"next")]);
        let other = Parts::new(Salt(*b"another sixteen."), &inner, 4);
        assert_eq!(other.collect::<Vec<_>>(), [Part::Torn(HEAD + 6)]);
    }
}
