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
    let (mut has_capitals, mut last_slash, mut first_dot) = (false, 0, path.len());
    for (at, byte) in path.iter().enumerate() {
        match BYTE_CLASSES[usize::from(*byte)] {
            // `/(S(1))` may be a session of ASP.NET.
            ByteClass::Slash if matches!(path.get(at + 1), Some(b'/' | b'(')) => return PathForm::Other,
            // A segment that ends in a dot, or is only dots.
            ByteClass::Dot if matches!(path.get(at + 1), None | Some(b'/')) => return PathForm::Other,
            ByteClass::Dot => first_dot = first_dot.min(at),
            ByteClass::Slash => last_slash = at,
            ByteClass::Capital => has_capitals = true,
            ByteClass::Special => return PathForm::Other,
            ByteClass::Plain => {}
        }
    }
    // Hardly any path has a dot before its last segment, or a last segment that has a dot and begins like an index.
    let may_name_scripts =
        first_dot < last_slash || (first_dot < path.len() && script::begins_like_index(&path[last_slash + 1..]));
    PathForm::Canonical { has_capitals, may_name_scripts }
}

/// What a byte of a path may mean.
#[derive(Clone, Copy)]
enum ByteClass {
    Plain,
    Capital,
    Slash,
    Dot,
    /// It may be part of another spelling.
    Special,
}

const BYTE_CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Special; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        classes[byte as usize] = match byte {
            b'/' => ByteClass::Slash,
            b'.' => ByteClass::Dot,
            // `$` as in `::$DATA`, which in Windows is another name of the same file.
            b'%' | b'\\' | b';' | b'$' => ByteClass::Special,
            b'A'..=b'Z' => ByteClass::Capital,
            _ => ByteClass::Plain,
        };
        byte += 1;
    }
    classes
};
