//! The `notify` and `audit` sections.

use super::section::section;
use super::value::Spanned;
use super::value::Text;
use crate::units::Span;

section! {
    /// A webhook that gets a message when a limit is reached.
    Channel {
        /// An `http` or `https` URL to which messages are posted as JSON. The path of the URL is treated as a secret
        /// and never shown.
        webhook: Text,
        /// The shortest time between two messages about the same limit and key. Default: 1m.
        every: Spanned<Span>,
    }
    required {
        webhook => "write where messages go: `webhook: https://hooks.example.com/...`",
    }
}

section! {
    /// The audit trail: denials, delays, bans, unbans and reloads, one entry each.
    Audit {
        /// A file to which JSON lines are appended.
        file: Text,
        /// A stream in the Redis of the `store` section.
        redis_stream: RedisStream,
        /// A file for an `SQLite` database with one table, `audit`.
        sqlite: Text,
    }
    later {
        "crowdsec" => "remove it, and read the bans from `file`",
    }
}

section! {
    /// A stream in the Redis of the `store` section.
    RedisStream {
        /// The key of the stream. `store.redis.key_prefix` is not put before it.
        key: Text,
        /// About how many entries the stream keeps, the latest. Default: 100000.
        max_entries: Spanned<u64>,
    }
    required {
        key => "name the stream: `key: portcullis:audit`",
    }
}
