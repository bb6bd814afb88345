//! One field of a head.

use super::KnownName;
use super::Name;
use super::Span;

/// Where a field stands in the text of its head, and what is known of its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The first byte of the line, and the first one behind its line end.
    pub(super) line: Span,
    pub(super) value: Span,
    pub(super) name_length: u16,
    /// [`KnownName::to_byte`].
    pub(super) known: u8,
    /// The line is the name, `: `, the value and CR LF, with nothing else.
    pub(super) is_plain: bool,
    /// It is no longer a field of the head.
    pub(super) is_removed: bool,
}

/// A field: its name in lower case, and its value without blanks around it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field<'h> {
    pub name: Name<'h>,
    pub value: &'h [u8],
}

impl Entry {
    pub(super) fn known(&self) -> Option<KnownName> {
        KnownName::from_byte(self.known)
    }

    pub(super) fn field<'h>(&self, text: &'h [u8]) -> Field<'h> {
        Field { name: self.name(text), value: &text[self.value.range()] }
    }

    fn name<'h>(&self, text: &'h [u8]) -> Name<'h> {
        match self.known() {
            Some(known) => Name::Known(known),
            None => Name::Other(str::from_utf8(self.name_bytes(text)).unwrap_or_default()),
        }
    }

    pub(super) fn name_bytes<'h>(&self, text: &'h [u8]) -> &'h [u8] {
        &text[self.line.start as usize..][..usize::from(self.name_length)]
    }

    /// Whether it has this name, and is not removed.
    pub(super) fn is(&self, name: Name<'_>, text: &[u8]) -> bool {
        let is_named = match name {
            Name::Known(known) => self.known() == Some(known),
            Name::Other(other) => {
                usize::from(self.name_length) == other.len() && self.name_bytes(text) == other.as_bytes()
            }
        };
        is_named && !self.is_removed
    }
}
