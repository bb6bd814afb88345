//! The static table of HPACK, and the dynamic table of one connection.

use std::collections::VecDeque;
use std::sync::LazyLock;

use crate::wire::head;
use crate::wire::http2::hpack::{Field, InvalidHpack, Name};

/// The dynamic table, newest field first.
#[derive(Debug)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    size: usize,
    max: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, max: DEFAULT_TABLE_SIZE }
    }

    pub(super) fn get(&self, index: usize) -> Result<Field<'_>, InvalidHpack> {
        let index = index.checked_sub(1).ok_or(InvalidHpack)?;
        match STATIC_TABLE.get(index) {
            Some(field) => Ok(*field),
            None => self.entries.get(index - STATIC_TABLE.len()).map(Entry::field).ok_or(InvalidHpack),
        }
    }

    /// Inserts a field. One that is larger than the table empties it.
    pub(super) fn insert(&mut self, entry: Entry) {
        let size = entry.size;
        self.shrink(self.max.saturating_sub(size));
        if size <= self.max {
            self.size += size;
            self.entries.push_front(entry);
        }
    }

    /// Empties the table, as inserting a field does that is larger than the table.
    pub(super) fn clear(&mut self) {
        self.shrink(0);
    }

    pub(super) fn resize(&mut self, max: usize) -> Result<(), InvalidHpack> {
        if max > DEFAULT_TABLE_SIZE {
            return Err(InvalidHpack);
        }
        self.max = max;
        self.shrink(max);
        Ok(())
    }

    fn shrink(&mut self, max: usize) {
        while self.size > max
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
    }
}

/// A field in the dynamic table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    /// Without its text, where that is in `other_name`.
    name: Name<'static>,
    other_name: Box<str>,
    value: Option<Box<[u8]>>,
    size: usize,
}

impl Entry {
    pub(super) fn of(field: Field<'_>) -> Self {
        let Field { name, value, size } = field;
        let (name, other_name) = match name {
            Name::Field(head::Name::Other(name)) => (Name::Field(head::Name::Other("")), name),
            Name::Field(head::Name::Known(known)) => (Name::Field(known.into()), ""),
            Name::Invalid(length) => (Name::Invalid(length), ""),
            Name::Method => (Name::Method, ""),
            Name::Scheme => (Name::Scheme, ""),
            Name::Authority => (Name::Authority, ""),
            Name::Path => (Name::Path, ""),
            Name::Protocol => (Name::Protocol, ""),
            Name::Status => (Name::Status, ""),
        };
        Self { name, other_name: other_name.into(), value: value.map(Into::into), size }
    }

    pub(super) fn field(&self) -> Field<'_> {
        let name = match self.name {
            Name::Field(head::Name::Other(_)) => Name::Field(head::Name::Other(&self.other_name)),
            name => name,
        };
        Field { name, value: self.value.as_deref(), size: self.size }
    }
}

/// In bytes: the default of `SETTINGS_HEADER_TABLE_SIZE`, which we do not change.
pub const DEFAULT_TABLE_SIZE: usize = 4096;

/// The static table (RFC 7541, appendix A).
static STATIC_TABLE: LazyLock<[Field<'static>; 61]> =
    LazyLock::new(|| STATIC_TEXTS.map(|(name, value)| Field::new(Name::parse(name.as_bytes()), value.as_bytes())));

pub(super) const STATIC_TEXTS: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];
