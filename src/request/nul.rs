//! Readings of a value with a NUL: many applications end the value there, and others remove the NUL.

use std::borrow::Cow;

use smallvec::SmallVec;
use smallvec::smallvec;

/// The readings of a value: the text before its first NUL and, if that differs, the text without its NULs. Nearly all
/// values have no NUL and one reading.
pub fn readings(value: Cow<'_, str>) -> SmallVec<[Cow<'_, str>; 2]> {
    let Some(end) = memchr::memchr(0, value.as_bytes()) else { return smallvec![value] };
    let without = value.replace('\0', "");
    let before = match value {
        Cow::Borrowed(value) => Cow::Borrowed(&value[..end]),
        Cow::Owned(mut value) => {
            value.truncate(end);
            Cow::Owned(value)
        }
    };
    if before == without { smallvec![before] } else { smallvec![before, Cow::Owned(without)] }
}

/// The text before the first NUL.
pub fn before(value: &str) -> &str {
    memchr::memchr(0, value.as_bytes()).map_or(value, |end| &value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        assert_eq!(readings(Cow::Borrowed(value)).as_slice(), expected, "{value:?}");
        assert_eq!(readings(Cow::Owned(value.to_owned())).as_slice(), expected, "{value:?}");
        assert_eq!(before(value), expected[0], "{value:?}");
    }

    #[test]
    fn a_value_ends_at_a_nul_or_is_read_without_it() {
        check("alice", &["alice"]);
        check("", &[""]);
        check("alice\0", &["alice"]);
        check("alice\0x", &["alice", "alicex"]);
        check("al\0ice\0\0x", &["al", "alicex"]);
        check("\0alice", &["", "alice"]);
        check("\0\0", &[""]);
    }

    #[test]
    fn a_value_without_a_nul_is_borrowed() {
        assert!(matches!(&readings(Cow::Borrowed("alice"))[..], [Cow::Borrowed("alice")]));
    }
}
