//! Who is told, and what is written down: the `notify` and `audit` sections.

use super::Spanned;
use super::Text;
use super::section;
use crate::units::Span;

section! {
    /// Somebody who is told when a limit is reached.
    Channel {
        /// An http or https URL that messages are sent to, by POST, as JSON. Its path is a secret and never shown.
        webhook: Text,
        /// At most one message in so long for each limit and key. Default: 1m.
        every: Spanned<Span>,
    }
    required {
        webhook => "say where messages go: `webhook: https://hooks.example.com/...`",
    }
}

section! {
    /// Where a line is kept for everything that was done to somebody: denials, delays, bans, their end, reloads.
    Audit {
        /// A file to which JSON lines are appended.
        file: Text,
        /// A stream in the Redis of the `store` section.
        redis_stream: RedisStream,
        /// A file that `SQLite` reads, with one table.
        sqlite: Text,
    }
}

section! {
    /// A stream in the Redis of the `store` section.
    RedisStream {
        /// The key of the stream, as it is.
        key: Text,
        /// About so many entries are kept, the latest. Default: 100000.
        max_entries: Spanned<u64>,
    }
    required {
        key => "name the stream: `key: portcullis:audit`",
    }
}
