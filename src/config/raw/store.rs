//! The `store` section: where counts are kept.

use super::forms::OneOrList;
use super::section::section;
use super::value::Spanned;
use super::value::Text;
use super::words::words;
use crate::store::settings::Nodes;
use crate::units::Span;

section! {
    /// Where counts are kept.
    Store {
        /// A Redis that any number of gateways share. Default: none, counts are kept in this process.
        redis: Redis,
        /// Counts in this process; with Redis, what `local` counts in while Redis is down.
        memory: Memory,
        /// What to do while Redis does not answer, for limits that do not say: `local` (default) counts in this
        /// process, `allow` lets requests pass uncounted, `deny` answers 503.
        on_failure: Spanned<OnFailure>,
        /// How many gateways share the Redis. While it is down, `local` lets each gateway grant its part of every limit.
        /// `auto` (default): those that are there, each of which holds a part that Redis has granted; all parts are at most
        /// the whole at any moment. A number: that many, always.
        nodes: Spanned<Nodes>,
        /// Whether a gateway may hold units of a limit for a second, so that it asks Redis less often: `auto` (default)
        /// where that spares calls, or `off`. The rate is kept either way.
        leases: Spanned<Leases>,
    }
}

section! {
    /// The Redis that gateways share.
    Redis {
        /// The URL: `redis://user:password@host:6379/0`, or `rediss://` for TLS. Several for `cluster` and
        /// `sentinel`.
        url: OneOrList<Text>,
        /// A file with the password, in place of the one in the URL. The gateway reads it for each connection to Redis, so that
        /// a changed one counts once Redis refuses the old one.
        password_file: Text,
        /// `single` (default) server, `cluster`, or servers found through `sentinel`.
        mode: Spanned<Mode>,
        /// How long Redis may be silent while it owes an answer. After that, requests are decided without Redis until it
        /// answers again.
        /// Default: 100ms.
        timeout: Spanned<Span>,
        /// How many replicas must have a charge before it counts as made (`WAIT`). If they have it not within half of
        /// `timeout`, the server counts as down. Default: 0.
        wait: Spanned<u64>,
        /// How the name of every key begins. Gateways with the same prefix count together. Default: portcullis.
        key_prefix: Text,
        /// With `mode: cluster`, what decides in which hash slot a key is: the `key` itself (default), so that all servers have as
        /// much to do, or the `client` in it, so that one call decides all limits of a client.
        hash_slot: Spanned<HashSlot>,
    }
    required {
        url => "write where Redis is: `url: redis://127.0.0.1:6379/0`",
    }
}

words! {
    /// How the Redis servers work together.
    Mode {
        "single" => Single,
        "cluster" => Cluster,
        "sentinel" => Sentinel,
    }
}

words! {
    /// What decides in which hash slot of a cluster a key is.
    HashSlot {
        "key" => Key,
        "client" => Client,
    }
}

words! {
    /// What to do while Redis does not answer.
    OnFailure {
        "local" => Local,
        "allow" => Allow,
        "deny" => Deny,
    }
}

words! {
    /// Whether gateways hold units of limits.
    Leases {
        "auto" => Auto,
        "off" => Off,
    }
}

section! {
    /// Counts in the memory of this process.
    Memory {
        /// How many keys are remembered. When the store is full, keys with no limit reached are removed first.
        /// Default: 1000000.
        max_keys: Spanned<u64>,
        /// How many sessions of signed-in people are remembered, in this process and in Redis. When they are full, those
        /// whose last use is the longest ago are forgotten first. Default: 1000000.
        max_sessions: Spanned<u64>,
        /// A file in which bans, known clients, sessions and the signing keys of device cookies survive a restart.
        /// Default: none, they end with the process.
        snapshot: Text,
    }
}
