//! The `store` section: where counts are kept.

use super::field::section;
use super::forms::OneOrList;
use crate::config::raw::forms::{Spanned, Text};
use crate::config::raw::grammar;
use crate::rules::limit::OnFailure;
use crate::store::any_store::Nodes;
use crate::store::redis::{HashSlot, Mode};
use crate::store::{memory, redis};
use crate::upstream::{Balance, HealthCheck, Timeouts};
use crate::words::units::Span;
use crate::words::word::words;

section! {
    /// Where counts are kept.
    Store {
        /// A Redis that any number of gateways share. Default: none, counts are kept in this process.
        redis: Redis,
        /// Counts in this process; with Redis, what `local` counts in while Redis is down.
        memory: Memory,
        /// What to do while Redis does not answer, for limits that do not say: `local` counts in this
        /// process, `allow` lets requests pass uncounted, `deny` answers 503.
        on_failure: Spanned<OnFailure> = OnFailure::default(),
        /// How many gateways share the Redis. While it is down, `local` lets each gateway grant its part of every limit.
        /// `auto`: those that are there, each of which holds a part that Redis has granted; all parts are at most
        /// the whole at any moment. A number: that many, always.
        nodes: Spanned<Nodes> = Nodes::default(),
        /// Whether a gateway may hold units of a limit for a second, so that it asks Redis less often: `auto`
        /// where that spares calls, or `off`. The rate is kept either way.
        leases: Spanned<Leases> = Leases::default(),
    }
    short {
        url => "{redis: {url: $}}",
        memory => "{memory: {max_keys: 1000000}}",
        anything => "{redis: {url: \"redis://127.0.0.1:6379/0\"}}",
    }
    rules {
        grammar::needs("on_failure", "redis"),
        grammar::needs("nodes", "redis"),
    }
}

section! {
    /// The Redis that gateways share.
    Redis {
        /// The URL: `redis://user:password@host:6379/0`, or `rediss://` for TLS. Several for `cluster` and
        /// `sentinel`.
        url: OneOrList<Text> => REDIS,
        /// A file with the password, in place of the one in the URL. The gateway reads it for each connection to Redis, so that
        /// a changed one counts once Redis refuses the old one.
        password_file: Text,
        /// `single` server, `cluster`, or servers found through `sentinel`.
        mode: Spanned<Mode> = Mode::default(),
        /// How long Redis may be silent while it owes an answer. After that, requests are decided without Redis until it
        /// answers again.
        timeout: Spanned<Span> => SOME_TIME = Span(redis::RedisSettings::TIMEOUT),
        /// How many replicas must have a charge before it counts as made (`WAIT`). If they have it not within half of
        /// `timeout`, the server counts as down.
        wait: Spanned<u64> => REPLICAS = redis::RedisSettings::WAIT,
        /// How the name of every key begins. Gateways with the same prefix count together.
        key_prefix: Text => KEY_PREFIX = redis::RedisSettings::KEY_PREFIX,
        /// With `mode: cluster`, what decides in which hash slot a key is: its `key`, so that all servers have as
        /// much to do, or the `client` in it, so that one call decides all limits of a client.
        hash_slot: Spanned<HashSlot> = HashSlot::default(),
    }
    required {
        url => "write where Redis is: `url: redis://127.0.0.1:6379/0`",
    }
    short {
        url => "{url: $}",
        anything => "{url: \"redis://127.0.0.1:6379/0\"}",
    }
    rules {
        grammar::filled(&["url"]),
    }
}

words! {
    /// Whether gateways hold units of limits. They compile to whether they do.
    #[derive(Default)]
    pub enum Leases {
        #[default]
        Auto = "auto",
        Off = "off",
    }
}

section! {
    /// Counts in the memory of this process.
    Memory {
        /// How many keys are remembered. When the store is full, keys with no limit reached are removed first.
        max_keys: Spanned<u64> => CAPACITY = memory::MemorySettings::MAX_KEYS,
        /// How many sessions of signed-in people are remembered, in this process and in Redis. When they are full, those
        /// whose last use is the longest ago are forgotten first.
        max_sessions: Spanned<u64> => CAPACITY = memory::MemorySettings::MAX_SESSIONS,
        /// A file in which bans, known clients, sessions and the signing keys of device cookies survive a restart.
        /// Default: none, they end with the process.
        snapshot: Text,
    }
    short {
        number => "{max_keys: $}",
    }
}

section! {
    /// An application: its servers, and how the gateway uses them.
    Upstream {
        /// URLs of its servers, such as `http://10.0.1.5:8000`, or `http://unix:/run/app.sock` for a Unix socket. The
        /// gateway verifies the certificate of an `https://` server.
        servers: OneOrList<Text> => SERVER,
        /// Which server gets the next request: the one with the fewest (`least_requests`, default), the next in turn
        /// (`round_robin`), or always the same for one client (`client_ip`).
        balance: Spanned<Balance>,
        /// The Host that the application sees: the one the client sent (`preserve`, default), or a fixed host name.
        host: Text,
        /// Health checks. Default: none.
        health: Health,
        /// How long each step towards the application may take.
        timeouts: UpstreamTimeouts,
        /// How the gateway verifies `https://` servers.
        tls: UpstreamTls,
        /// Speak HTTP/2 to the servers: negotiated by ALPN at `https://`, with prior knowledge at `http://`. Default:
        /// false.
        http2: Spanned<bool>,
        /// How many idle connections the gateway keeps to each server, all cores together; 0: none. Unused ones end by
        /// `timeouts.idle`. Default: as many as were in use lately and descriptors allow.
        max_idle: Spanned<u64>,
    }
    required {
        servers => "write where the application is: `servers: [http://127.0.0.1:8000]`",
    }
    later {
        "max_requests" => "bound requests under way with a limit: `{key: [], concurrent: 40}`",
        "queue" => "remove it: a limit denies what is beyond it, or holds it for a while with `then: {delay: 2s}`",
        "headers" => "remove it: the application, or a proxy beside it, can set the field",
    }
    short {
        url => "{servers: $}",
        anything => "{servers: [\"http://127.0.0.1:8000\"]}",
    }
    rules {
        grammar::filled(&["servers"]),
    }
}

section! {
    /// How the gateway verifies `https://` servers.
    UpstreamTls {
        /// A file with the CA certificates that the gateway trusts for these servers, in PEM. Default: the
        /// certificates of the system.
        ca: Text,
        /// The name that the certificate must be for, also sent as SNI. Default: the host in the URL.
        server_name: Text,
    }
}

section! {
    /// Health checks of the servers.
    Health {
        /// The path that the gateway requests. A status from 200 to 399 is a good answer.
        path: Text,
        /// The `Host` of the checks, for an application that answers only to its own names. Default: the upstream's
        /// `host`, or the server as its URL names it.
        host: Text,
        /// The time between two checks.
        every: Spanned<Span> => SOME_TIME = Span(HealthCheck::EVERY),
        /// How long an answer may take.
        timeout: Spanned<Span> => SOME_TIME = Span(HealthCheck::TIMEOUT),
        /// How many good answers in a row make a server healthy.
        healthy: Spanned<u64> => COUNT = HealthCheck::HEALTHY,
        /// How many bad answers in a row make a server unhealthy.
        unhealthy: Spanned<u64> => COUNT = HealthCheck::UNHEALTHY,
    }
    required {
        path => "write the path to request: `path: /healthz`",
    }
    short {
        path => "{path: $}",
        on => "{path: /healthz}",
    }
}

section! {
    /// How long each step towards the application may take.
    UpstreamTimeouts {
        /// Connecting; 504 beyond.
        connect: Spanned<Span> => SOME_TIME = Span(Timeouts::DEFAULT.connect),
        /// From the end of the request to the head of the answer (504 beyond), and between two parts of the answer's
        /// body.
        response: Spanned<Span> => SOME_TIME = Span(Timeouts::DEFAULT.response),
        /// How long an unused connection is kept open.
        idle: Spanned<Span> => SOME_TIME = Span(Timeouts::DEFAULT.idle),
    }
    short {
        span => "{response: $}",
    }
}
