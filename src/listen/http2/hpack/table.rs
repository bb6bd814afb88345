//! What both sides of a connection know of its fields: what the standard says, and what the client has said.

use std::collections::VecDeque;
use std::sync::LazyLock;

use super::Undecodable;
use super::field::Field;

/// The newest first.
#[derive(Debug)]
pub(super) struct Table {
    entries: VecDeque<Field>,
    size: usize,
    most: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, most: BOUND }
    }

    pub(super) fn get(&self, index: usize) -> Result<&Field, Undecodable> {
        let index = index.checked_sub(1).ok_or(Undecodable)?;
        STANDARD.get(index).or_else(|| self.entries.get(index - STANDARD.len())).ok_or(Undecodable)
    }

    /// One that is larger than the table empties it.
    pub(super) fn insert(&mut self, field: Field) {
        let size = field.size;
        self.shrink(self.most.saturating_sub(size));
        if size <= self.most {
            self.size += size;
            self.entries.push_front(field);
        }
    }

    pub(super) fn resize(&mut self, most: usize) -> Result<(), Undecodable> {
        if most > BOUND {
            return Err(Undecodable);
        }
        self.most = most;
        self.shrink(most);
        Ok(())
    }

    fn shrink(&mut self, most: usize) {
        while self.size > most
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
    }
}

/// `SETTINGS_HEADER_TABLE_SIZE` where nobody says anything else, and we do not.
const BOUND: usize = 4096;

/// RFC 7541, appendix A.
static STANDARD: LazyLock<[Field; 61]> = LazyLock::new(|| {
    [
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
    ]
    .map(|(name, value)| Field::of_table(name, value))
});
