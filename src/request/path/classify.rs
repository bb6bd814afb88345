//! A quick look at a path: most paths are canonical as they come, and one pass over the bytes finds that out.

use super::script;

/// How much there is to do to a path.
pub(super) enum PathForm {
    /// It is ASCII, and canonical but for capital letters.
    Canonical {
        has_capitals: bool,
        may_name_scripts: bool,
    },
    Other,
}

pub(super) fn classify(path: &[u8]) -> PathForm {
    if path.first() != Some(&b'/') || (path.len() > 1 && path.last() == Some(&b'/')) {
        return PathForm::Other;
    }
    let (mut found, mut pairs, mut before) = (0, 0, 0);
    for byte in path {
        let class = BYTE_CLASSES[usize::from(*byte)];
        found |= class;
        pairs |= class & (before >> NEXT);
        before = class;
    }
    if found & SPECIAL != 0 || pairs != 0 || before & DOT != 0 {
        return PathForm::Other;
    }
    let has_capitals = found & CAPITAL != 0;
    PathForm::Canonical { has_capitals, may_name_scripts: found & DOT != 0 && may_name_scripts(path) }
}

/// Hardly any path has a dot before its last segment, or a last segment that has a dot and begins like an index.
fn may_name_scripts(path: &[u8]) -> bool {
    let last_slash = memchr::memrchr(b'/', path).unwrap_or_default();
    let first_dot = memchr::memchr(b'.', path).unwrap_or(path.len());
    first_dot < last_slash || (first_dot < path.len() && script::begins_like_index(&path[last_slash + 1..]))
}

/// What a byte of a path may mean. Above [`NEXT`] are the classes that make a path special in the byte after it.
type ByteClass = u16;

const CAPITAL: ByteClass = 1;
const SLASH: ByteClass = 2;
const DOT: ByteClass = 4;
const BRACKET: ByteClass = 8;
/// It may be part of another spelling.
const SPECIAL: ByteClass = 16;

const NEXT: u32 = 8;

const BYTE_CLASSES: [ByteClass; 256] = {
    let mut classes = [SPECIAL; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        classes[byte as usize] = match byte {
            // `/(S(1))` may be a session of ASP.NET.
            b'/' => SLASH | (SLASH | BRACKET) << NEXT,
            // A segment that ends in a dot, or is only dots.
            b'.' => DOT | SLASH << NEXT,
            b'(' => BRACKET,
            // `$` as in `::$DATA`, which in Windows is another name of the same file.
            b'%' | b'\\' | b';' | b'$' => SPECIAL,
            b'A'..=b'Z' => CAPITAL,
            _ => 0,
        };
        byte += 1;
    }
    classes
};
