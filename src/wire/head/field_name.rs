//! Names of fields in configurations and rules.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::HeaderName;
use memchr::memchr;
use wide::u8x16;

use super::KnownName;
use crate::wire::head::field::Kind;

/// The name of a field, in lower case.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct FieldName(NameText);

#[derive(Clone, Eq, Hash, PartialEq)]
enum NameText {
    Known(KnownName),
    Other(Arc<str>),
}

/// A name to look for, in lower case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Name<'n> {
    Known(KnownName),
    /// It has no number.
    Other(&'n str),
}

/// The text is not a token (RFC 9110, section 5.6.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is not the name of a field")]
pub struct InvalidFieldName;

impl FieldName {
    pub fn as_str(&self) -> &str {
        match &self.0 {
            NameText::Known(name) => name.as_str(),
            NameText::Other(name) => name,
        }
    }

    /// `None`: it has no number.
    pub fn known(&self) -> Option<KnownName> {
        match &self.0 {
            NameText::Known(name) => Some(*name),
            NameText::Other(_) => None,
        }
    }

    fn of(lower: &str) -> Self {
        Self(KnownName::of(lower.as_bytes()).map_or_else(|| NameText::Other(lower.into()), NameText::Known))
    }
}

impl FromStr for FieldName {
    type Err = InvalidFieldName;

    /// In any case.
    fn from_str(text: &str) -> Result<Self, InvalidFieldName> {
        let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| InvalidFieldName)?;
        Ok(Self::of(name.as_str()))
    }
}

impl From<KnownName> for FieldName {
    fn from(name: KnownName) -> Self {
        Self(NameText::Known(name))
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<'n> Name<'n> {
    /// `text` is in lower case.
    pub fn of(text: &'n str) -> Self {
        KnownName::of(text.as_bytes()).map_or(Self::Other(text), Self::Known)
    }

    /// `None`: the text is no token in lower case, or is longer than any name.
    pub fn parse(text: &'n [u8]) -> Option<Self> {
        if let Some(known) = KnownName::of(text) {
            return Some(Self::Known(known));
        }
        let is_name = is_lower_token(text) && u16::try_from(text.len()).is_ok();
        str::from_utf8(text).ok().filter(|_| is_name).map(Self::Other)
    }

    pub fn as_str(self) -> &'n str {
        match self {
            Self::Known(name) => name.as_str(),
            Self::Other(name) => name,
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Known(name) => Kind::of_known(name),
            Self::Other(_) => Kind::UNKNOWN,
        }
    }
}

impl From<KnownName> for Name<'_> {
    fn from(name: KnownName) -> Self {
        Self::Known(name)
    }
}

impl<'n> From<&'n FieldName> for Name<'n> {
    fn from(name: &'n FieldName) -> Self {
        match &name.0 {
            NameText::Known(name) => Self::Known(*name),
            NameText::Other(name) => Self::Other(name),
        }
    }
}

// The bytes that names and values of fields may have.

/// A one in each byte.
const EACH: u128 = u128::MAX / 0xff;

const DELETE: u8 = 0x7f;

const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.')
            || matches!(byte, b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

/// Puts a name into lower case. Returns whether it is a token (RFC 9110, section 5.6.2). Most names are known, so that the loop
/// over the lines of a head is shorter without this.
#[inline(never)]
pub(super) fn lower_token(name: &mut [u8]) -> bool {
    name.make_ascii_lowercase();
    is_lower_token(name)
}

fn is_lower_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().fold(true, |all, byte| all & IN_NAMES[usize::from(*byte)])
}

/// Where the first colon stands.
#[inline]
pub(super) fn position_of_colon(line: &[u8]) -> Option<usize> {
    // Nearly all names are shorter than one block.
    let Some(block) = line.first_chunk::<16>() else { return line.iter().position(|byte| *byte == b':') };
    let colons = u8x16::from(*block).simd_eq(u8x16::splat(b':')).to_bitmask();
    if colons == 0 { memchr(b':', line) } else { Some(colons.trailing_zeros() as usize) }
}

/// Puts a name into lower case, if it is `lower` in any case, and returns whether it is. `lower` is letters in
/// lower case, digits and hyphens.
pub(super) fn lower_if_is(name: &mut [u8], lower: &[u8]) -> bool {
    if name.len() != lower.len() {
        return false;
    }
    match name.len() {
        4..8 => lower_ends_if_are::<4>(name, lower),
        8..=16 => lower_ends_if_are::<8>(name, lower),
        17..=32 => lower_ends_if_are::<16>(name, lower),
        _ if name.eq_ignore_ascii_case(lower) => {
            name.copy_from_slice(lower);
            true
        }
        _ => false,
    }
}

/// The same check for a name of `N` to `2 * N` bytes: its first `N` and its last `N` bytes cover it.
fn lower_ends_if_are<const N: usize>(name: &mut [u8], lower: &[u8]) -> bool {
    let (Some(first), Some(last)) = (name.first_chunk::<N>(), name.last_chunk::<N>()) else { return false };
    let (Some(lower_first), Some(lower_last)) = (lower.first_chunk::<N>(), lower.last_chunk::<N>()) else {
        return false;
    };
    if difference(*first, *lower_first) | difference(*last, *lower_last) != 0 {
        return false;
    }
    name[..N].copy_from_slice(lower_first);
    let end = name.len() - N;
    name[end..].copy_from_slice(lower_last);
    true
}

/// The bits in which a word of at most 16 bytes differs from one in lower case, but for the case of its letters. What is
/// at most `?` has no case.
fn difference<const N: usize>(word: [u8; N], lower: [u8; N]) -> u128 {
    let (word, lower) = (number(word), number(lower));
    let case_of_letters = (lower & (EACH * 0x40)) >> 1;
    (word ^ lower) & !case_of_letters
}

fn number<const N: usize>(word: [u8; N]) -> u128 {
    let mut wide = [0; 16];
    wide[..N].copy_from_slice(&word);
    u128::from_le_bytes(wide)
}

/// Whether this may be the value of a field: visible characters, blanks, tabs, and bytes above 0x7f. Counted without a
/// branch, so that the compiler checks many bytes at once.
pub fn is_value(value: &[u8]) -> bool {
    value.iter().fold(0_u8, |found, byte| found | u8::from(is_control(*byte))) == 0
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == DELETE
}

// The characters of tokens.

/// Whether a token may have this byte (RFC 9110, section 5.6.2).
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
