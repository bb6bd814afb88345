//! One field of a head.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut, Range};

use super::{KnownName, Name, NameSet};
use crate::words::pool::FreeList;

/// Where a field stands in the text of its head, and the kind of its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The first byte of the line, and the first one behind its line end.
    pub(super) line: Span,
    pub(super) value: Span,
    pub(super) name_length: u16,
    pub(super) kind: Kind,
    /// The line is the name, `: `, the value and CR LF, with nothing else.
    pub(super) is_plain: bool,
}

/// Whether the name of a field is known, in one byte: fields are looked for by it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Kind(u8);

impl Kind {
    /// The name has no number.
    pub(super) const UNKNOWN: Self = Self(u8::MAX);

    /// It is no longer a field of the head.
    pub(super) const REMOVED: Self = Self(u8::MAX - 1);

    pub(super) fn of(name: Option<KnownName>) -> Self {
        name.map_or(Self::UNKNOWN, Self::of_known)
    }

    pub(super) fn of_known(name: KnownName) -> Self {
        Self(name.to_byte())
    }

    pub(super) fn known(self) -> Option<KnownName> {
        KnownName::from_byte(self.0)
    }
}

/// A field: its name in lower case, and its value without blanks around it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field<'h> {
    pub name: Name<'h>,
    pub value: &'h [u8],
}

impl Entry {
    pub(super) fn known(&self) -> Option<KnownName> {
        self.kind.known()
    }

    pub(super) fn is_removed(&self) -> bool {
        self.kind == Kind::REMOVED
    }

    /// The same field in a text where it stands so many bytes later.
    pub(super) fn moved_by(&self, bytes: usize) -> Self {
        Self { line: self.line.moved_by(bytes), value: self.value.moved_by(bytes), ..*self }
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
        match name {
            Name::Known(known) => self.kind == Kind::of_known(known),
            Name::Other(other) => {
                self.kind == Kind::UNKNOWN
                    && usize::from(self.name_length) == other.len()
                    && self.name_bytes(text) == other.as_bytes()
            }
        }
    }
}

// The memory of heads, which the requests of a thread use one after another.

/// In bytes: the longest text of a head. The bounds of every protocol are far below.
pub(super) const MAX_TEXT: usize = u32::MAX as usize;

/// In bytes: a name, and what stands around it.
const ROOM: usize = 256;

/// In bytes: few heads are longer.
const MAX_KEPT_TEXT: usize = 8 * 1024;

/// Few heads have more fields.
const MAX_FIELDS: usize = 64;

/// The text of a head, and the table of its fields. It stays where it is while the head goes from step to step. The memory
/// comes from the pool of the thread, and goes back to it.
#[derive(Debug)]
pub(super) struct HeadMemory(
    /// `None` only while this is dropped.
    Option<Box<FieldTable>>,
);

#[derive(Debug, Default)]
pub(super) struct FieldTable {
    pub(super) text: Vec<u8>,
    /// Parts of a head that are read often: they are known to be UTF-8.
    pub(super) kept: String,
    pub(super) entries: Vec<Entry>,
    /// The known names that have a field.
    pub(super) present: NameSet,
    /// The known names that had more than one field at a time.
    pub(super) repeated: NameSet,
    /// How many fields are not removed.
    pub(super) count: usize,
}

impl FieldTable {
    pub(super) fn push(&mut self, entry: Entry) {
        if let Some(known) = entry.known()
            && self.present.insert(known)
        {
            self.repeated.insert(known);
        }
        self.count += 1;
        self.entries.push(entry);
    }

    /// Makes room for a value. A long text grows by little more than it needs, because many heads may be under way.
    pub(super) fn reserve(&mut self, value: usize) {
        if self.text.len() + value > MAX_KEPT_TEXT && self.text.capacity() - self.text.len() < value + ROOM {
            self.text.reserve_exact(value + 4 * ROOM);
        }
    }
}

/// Empty memory, with capacity if the pool has some.
impl Default for HeadMemory {
    fn default() -> Self {
        Self(Some(POOL.with_borrow_mut(FreeList::take).unwrap_or_default()))
    }
}

impl Deref for HeadMemory {
    type Target = FieldTable;

    fn deref(&self) -> &FieldTable {
        self.0.as_deref().expect("it is not dropped")
    }
}

impl DerefMut for HeadMemory {
    fn deref_mut(&mut self) -> &mut FieldTable {
        self.0.as_deref_mut().expect("it is not dropped")
    }
}

impl Drop for HeadMemory {
    fn drop(&mut self) {
        let Some(mut head) = self.0.take() else { return };
        if head.text.capacity().max(head.kept.capacity()) > MAX_KEPT_TEXT || head.entries.capacity() > MAX_FIELDS {
            return;
        }
        head.text.clear();
        head.kept.clear();
        head.entries.clear();
        (head.present, head.repeated, head.count) = (NameSet::default(), NameSet::default(), 0);
        // While a thread ends there is no pool.
        let _ = POOL.try_with(|pool| pool.borrow_mut().put(head));
    }
}

thread_local! {
    static POOL: RefCell<FreeList<Box<FieldTable>>> = const { RefCell::new(FreeList::empty()) };
}

// A part of a head's text.

/// A part of the text of a head, or of what is kept beside it, by its position. Both only grow, so a span stays valid.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    /// The bytes from `start` to before `end` of the text.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: position(start), end: position(end) }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn moved_by(self, bytes: usize) -> Self {
        let bytes = position(bytes);
        Self { start: self.start + bytes, end: self.end + bytes }
    }
}

/// A position in the text of a head, which [`MAX_TEXT`] bounds.
#[expect(clippy::cast_possible_truncation, reason = "a text is shorter")]
pub(super) fn position(offset: usize) -> u32 {
    debug_assert!(offset <= MAX_TEXT, "the text of a head is longer than its bound");
    offset as u32
}
