//! The fields of a head, on the text that they arrived in.

use std::fmt;
use std::ops::Range;
use std::str::Utf8Error;

use super::field::Entry;
use super::{Field, KnownName, Name, NameSet, Span};
use crate::wire::head::field::{FieldTable, HeadMemory, Kind, MAX_TEXT};
use crate::wire::head::field_name;

/// The fields of a head in their order, and the text that they stand in. Names are in lower case, and values have no control
/// characters but tabs. What is added is appended to the text; nothing in it moves.
#[derive(Default)]
pub struct Fields {
    memory: HeadMemory,
}

/// A line has no colon, or the name before it is not a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is not a field of a head")]
pub struct InvalidField;

impl Fields {
    /// No fields yet, on a text that begins with these bytes.
    pub fn on(text: &[u8]) -> Self {
        assert!(text.len() <= MAX_TEXT, "the head is too long");
        let mut fields = Self::default();
        fields.memory.text.extend_from_slice(text);
        fields
    }

    /// Notes that a field stands in the text: a name at `start`, a colon, and a value, in a line that ends before `end`. The
    /// name is put into lower case. `value_of` finds the value in what stands behind the colon and before `content_end`.
    /// The line has no control characters but tabs: the caller checks that.
    #[inline]
    pub fn note(
        &mut self,
        start: usize,
        content_end: usize,
        end: usize,
        value_of: impl FnOnce(&[u8]) -> Range<usize>,
    ) -> Result<(), InvalidField> {
        let line = &mut self.memory.text[start..end];
        let colon = field_name::position_of_colon(&line[..content_end - start]).ok_or(InvalidField)?;
        let (name, rest) = line.split_at_mut(colon);
        let known = KnownName::in_any_case(name);
        if known.is_none() && !field_name::lower_token(name) {
            return Err(InvalidField);
        }
        let name_length = u16::try_from(colon).map_err(|_| InvalidField)?;
        let (value, is_plain) = match rest {
            // The form that nearly all peers write.
            [b':', b' ', first, .., last, b'\r', b'\n'] if *first > b' ' && *last > b' ' && content_end + 2 == end => {
                (Span::new(start + colon + 2, content_end), true)
            }
            _ => {
                let value = value_of(&rest[1..content_end - start - colon]);
                let is_plain = value.start == 1
                    && rest.starts_with(b": ")
                    && rest.ends_with(b"\r\n")
                    && rest.len() == 1 + value.end + 2;
                (Span::new(start + colon + 1 + value.start, start + colon + 1 + value.end), is_plain)
            }
        };
        self.memory.push(Entry { line: Span::new(start, end), value, name_length, kind: Kind::of(known), is_plain });
        Ok(())
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.memory.count
    }

    pub fn is_empty(&self) -> bool {
        self.memory.count == 0
    }

    /// Whether there is a field with this name.
    pub fn has(&self, name: KnownName) -> bool {
        self.memory.present.has(name)
    }

    /// Whether there is a field with one of these names.
    pub fn has_any(&self, names: NameSet) -> bool {
        !self.memory.present.and(names).is_empty()
    }

    /// The value of the first field with this name.
    pub fn get<'n>(&self, name: impl Into<Name<'n>>) -> Option<&[u8]> {
        Some(self.slice(self.find(name.into())?.value))
    }

    /// Where the value of the first field with this name stands.
    pub fn span(&self, name: KnownName) -> Option<Span> {
        Some(self.find(name.into())?.value)
    }

    /// Where the value stands, if exactly one field has this name.
    pub fn single_span<'n>(&self, name: impl Into<Name<'n>>) -> Option<Span> {
        let name = name.into();
        let FieldTable { text, entries, .. } = &*self.memory;
        let mut entries = entries.iter().filter(|entry| entry.is(name, text));
        let first = entries.next()?;
        if entries.next().is_none() { Some(first.value) } else { None }
    }

    /// The value, if exactly one field has this name.
    pub fn single<'h>(&'h self, name: impl Into<Name<'h>>) -> Option<&'h [u8]> {
        let name = name.into();
        if let Name::Known(known) = name
            && !self.memory.repeated.has(known)
        {
            return self.get(known);
        }
        let mut values = self.get_all(name);
        values.next().filter(|_| values.next().is_none())
    }

    /// The values of all fields with this name.
    pub fn get_all<'h>(&'h self, name: impl Into<Name<'h>>) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        let name = name.into();
        let FieldTable { text, entries, .. } = &*self.memory;
        let entries: &[Entry] = if self.may_have(name) { entries } else { &[] };
        entries.iter().filter(move |entry| entry.is(name, text)).map(|entry| &text[entry.value.range()])
    }

    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        let FieldTable { text, entries, .. } = &*self.memory;
        entries.iter().filter(|entry| !entry.is_removed()).map(|entry| entry.field(text))
    }

    fn find(&self, name: Name<'_>) -> Option<&Entry> {
        if !self.may_have(name) {
            return None;
        }
        let FieldTable { text, entries, .. } = &*self.memory;
        entries.iter().find(|entry| entry.is(name, text))
    }

    fn may_have(&self, name: Name<'_>) -> bool {
        match name {
            Name::Known(known) => self.has(known),
            Name::Other(_) => true,
        }
    }

    /// Adds a field. The value has no control characters.
    pub fn append<'n>(&mut self, name: impl Into<Name<'n>>, value: &[u8]) {
        self.memory.reserve(value.len());
        self.append_with(name, |text| text.extend_from_slice(value));
    }

    /// Adds a field with the value of the first field named `of`, if there is one.
    pub fn append_copy(&mut self, name: KnownName, of: KnownName) {
        if let Some(value) = self.span(of) {
            self.append_with(name, |text| text.extend_from_within(value.range()));
        }
    }

    /// Adds a field whose value `write` appends, which has no control characters.
    pub fn append_with<'n>(&mut self, name: impl Into<Name<'n>>, write: impl FnOnce(&mut Vec<u8>)) {
        let name = name.into();
        let memory = &mut *self.memory;
        let text = &mut memory.text;
        let start = text.len();
        match name {
            Name::Known(known) => text.extend_from_slice(known.line_start().as_bytes()),
            Name::Other(other) => {
                text.extend_from_slice(other.as_bytes());
                text.extend_from_slice(b": ");
            }
        }
        let value = text.len();
        write(text);
        assert!(text.len() < MAX_TEXT - 2, "the head is too long");
        debug_assert!(field_name::is_value(&text[value..]), "a field has a control character");
        let Ok(name_length) = u16::try_from(value - start - 2) else { return text.truncate(start) };
        let value = Span::new(value, text.len());
        text.extend_from_slice(b"\r\n");
        let line = Span::new(start, text.len());
        memory.push(Entry { line, value, name_length, kind: name.kind(), is_plain: true });
    }

    /// Adds the fields of a block, whose lines are copied in one piece.
    pub fn append_block(&mut self, block: &FieldBlock) {
        let memory = &mut *self.memory;
        memory.reserve(block.text.len());
        let shift = memory.text.len();
        memory.text.extend_from_slice(&block.text);
        assert!(memory.text.len() < MAX_TEXT, "the head is too long");
        block.entries.iter().for_each(|entry| memory.push(entry.moved_by(shift)));
    }

    /// Adds a field in place of all others with its name.
    pub fn insert<'n>(&mut self, name: impl Into<Name<'n>>, value: &[u8]) {
        let name = name.into();
        self.remove(name);
        self.append(name, value);
    }

    /// Removes all fields with this name. Returns whether there were any.
    pub fn remove<'n>(&mut self, name: impl Into<Name<'n>>) -> bool {
        let name = name.into();
        if !self.may_have(name) {
            return false;
        }
        let FieldTable { text, entries, present, count, .. } = &mut *self.memory;
        let before = *count;
        for entry in entries.iter_mut().filter(|entry| entry.is(name, text)) {
            entry.kind = Kind::REMOVED;
            *count -= 1;
        }
        if let Name::Known(known) = name {
            *present = present.without(NameSet::of(&[known]));
        }
        *count < before
    }

    /// Removes all fields with these names.
    pub fn remove_any(&mut self, names: NameSet) {
        if !self.has_any(names) {
            return;
        }
        let FieldTable { entries, present, count, .. } = &mut *self.memory;
        *present = present.without(names);
        for entry in entries.iter_mut().filter(|entry| !entry.is_removed()) {
            if entry.known().is_some_and(|known| names.has(known)) {
                entry.kind = Kind::REMOVED;
                *count -= 1;
            }
        }
    }

    /// Moves the first field with this name ahead of all others.
    pub fn move_to_front(&mut self, name: KnownName) {
        let FieldTable { text, entries, .. } = &mut *self.memory;
        if let Some(index) = entries.iter().position(|entry| entry.is(name.into(), text)) {
            entries[..=index].rotate_right(1);
        }
    }

    /// Keeps only the first field with this name.
    pub fn remove_repeated(&mut self, name: KnownName) {
        let FieldTable { text, entries, count, .. } = &mut *self.memory;
        for entry in entries.iter_mut().filter(|entry| entry.is(name.into(), text)).skip(1) {
            entry.kind = Kind::REMOVED;
            *count -= 1;
        }
    }

    /// Removes the fields that `keeps` returns false for.
    pub fn retain(&mut self, mut keeps: impl FnMut(Field<'_>) -> bool) {
        let FieldTable { text, entries, present, count, .. } = &mut *self.memory;
        *present = NameSet::default();
        for entry in entries.iter_mut().filter(|entry| !entry.is_removed()) {
            if !keeps(entry.field(text)) {
                entry.kind = Kind::REMOVED;
                *count -= 1;
            } else if let Some(known) = entry.known() {
                present.insert(known);
            }
        }
    }

    /// Removes the fields without a known name that `keeps` returns false for.
    pub fn retain_unknown(&mut self, mut keeps: impl FnMut(Name<'_>) -> bool) {
        let FieldTable { text, entries, count, .. } = &mut *self.memory;
        let unknown = entries.iter_mut().filter(|entry| entry.kind == Kind::UNKNOWN);
        for entry in unknown {
            if !keeps(entry.field(text).name) {
                entry.kind = Kind::REMOVED;
                *count -= 1;
            }
        }
    }

    /// The known names that have a field and are in a set.
    pub fn among(&self, names: NameSet) -> impl Iterator<Item = KnownName> + use<> {
        names.and(self.memory.present).iter()
    }

    /// Writes the fields, each on a line, without the empty line behind them. Lines that stand side by side are copied
    /// together.
    pub fn write(&self, out: &mut Vec<u8>) {
        let FieldTable { text, entries, .. } = &*self.memory;
        let mut run = Span::default();
        for entry in entries.iter().filter(|entry| !entry.is_removed()) {
            if entry.is_plain && entry.line.start == run.end {
                run.end = entry.line.end;
                continue;
            }
            out.extend_from_slice(&text[run.range()]);
            run = if entry.is_plain { entry.line } else { Span::default() };
            if !entry.is_plain {
                write_line(entry.name_bytes(text), &text[entry.value.range()], out);
            }
        }
        out.extend_from_slice(&text[run.range()]);
    }

    /// In bytes: enough for what [`Self::write`] writes.
    pub fn text_length(&self) -> usize {
        self.memory.text.len()
    }

    /// A part of the text.
    pub fn slice(&self, span: Span) -> &[u8] {
        &self.memory.text[span.range()]
    }

    /// The whole text.
    pub fn text(&self) -> &[u8] {
        &self.memory.text
    }

    /// Keeps text beside the fields. For [`Self::kept`].
    pub fn keep(&mut self, text: &str) -> Span {
        let kept = &mut self.memory.kept;
        let start = kept.len();
        kept.push_str(text);
        assert!(kept.len() < MAX_TEXT, "the head is too long");
        Span::new(start, kept.len())
    }

    /// Keeps a part of the text, which is checked once.
    pub fn keep_part(&mut self, part: Span) -> Result<Span, Utf8Error> {
        let FieldTable { text, kept, .. } = &mut *self.memory;
        let start = kept.len();
        kept.push_str(str::from_utf8(&text[part.range()])?);
        Ok(Span::new(start, kept.len()))
    }

    /// Text that is kept beside the fields.
    pub fn kept(&self, span: Span) -> &str {
        &self.memory.kept[span.range()]
    }

    /// Drops the text from `length` on, in which no field stands.
    pub fn truncate_text(&mut self, length: usize) {
        self.memory.text.truncate(length);
    }

    /// Releases unused memory, for a head that is kept for long.
    pub fn shrink(&mut self) {
        self.memory.text.shrink_to_fit();
        self.memory.kept.shrink_to_fit();
        self.memory.entries.shrink_to_fit();
    }
}

/// Fields that are added to many heads alike.
#[derive(Debug)]
pub struct FieldBlock {
    text: Box<[u8]>,
    entries: Box<[Entry]>,
}

impl From<&Fields> for FieldBlock {
    fn from(fields: &Fields) -> Self {
        let FieldTable { text, entries, .. } = &*fields.memory;
        let entries = entries.iter().filter(|entry| !entry.is_removed());
        Self { text: text.as_slice().into(), entries: entries.copied().collect() }
    }
}

/// Writes one field on a line.
pub fn write_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

impl<'n, N: Into<Name<'n>>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    /// The values have no control characters.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(named: I) -> Self {
        let mut fields = Self::default();
        for (name, value) in named {
            fields.append(name, value.as_ref());
        }
        fields
    }
}

/// Values hold tokens, so only names are shown.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|field| field.name)).finish()
    }
}
