//! The `store` section: where counts are kept.

use super::Spanned;
use super::Text;
use super::forms::OneOrMany;
use super::leaf::words;
use super::section;
use crate::units::Span;

section! {
    /// Where counts are kept.
    Store {
        /// In a Redis that any number of gateways share. Left out: in this process alone.
        redis: Redis,
        /// In this process; beside Redis, what decides while it is away.
        memory: Memory,
        /// What holds while Redis does not answer, where a limit does not say: `local` (default) counts in this process, `allow` lets pass, `deny` answers 503.
        on_failure: Spanned<OnFailure>,
        /// How many gateways share the Redis: while it is away `local` lets each grant its share of every limit. Default: 1.
        nodes: Spanned<u64>,
    }
}

section! {
    /// The Redis that gateways share.
    Redis {
        /// Where it is: `redis://user:password@host:6379/0`, `rediss://` for TLS. Several for `cluster` and `sentinel`.
        url: OneOrMany<Text>,
        /// `single` (default) server, `cluster`, or servers found through `sentinel`.
        mode: Spanned<Mode>,
        /// How long a request waits for Redis; then nobody asks until it answers again. Default: 100ms.
        timeout: Spanned<Span>,
        /// What every key begins with. Gateways with the same prefix count together. Default: portcullis.
        key_prefix: Text,
    }
    required {
        url => "say where Redis is: `url: redis://127.0.0.1:6379/0`",
    }
}

words! {
    /// How the servers stand together.
    Mode {
        "single" => Single,
        "cluster" => Cluster,
        "sentinel" => Sentinel,
    }
}

words! {
    /// What holds while Redis does not answer.
    OnFailure {
        "local" => Local,
        "allow" => Allow,
        "deny" => Deny,
    }
}

section! {
    /// Counts in this process.
    Memory {
        /// How many keys are remembered. When full, keys that bind nobody are forgotten first. Default: 1000000.
        max_keys: Spanned<u64>,
        /// A file in which bans, known clients and the keys of device cookies survive a restart. Left out: they end with the process.
        snapshot: Text,
    }
}
