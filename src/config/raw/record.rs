//! The `gateway`, `notify`, `audit`, `metrics` and `tracing` sections.

use super::field::section;
use crate::config::raw::forms::{Spanned, Text};
use crate::config::raw::grammar;
use crate::record::RouteSeries;
use crate::record::notify::ChannelSettings;
use crate::record::spans::SampleRatio;
use crate::words::units::Span;

section! {
    /// What this gateway is called in the status, in logs, in messages to webhooks and in metrics.
    Gateway {
        /// The name, such as `eu-1`; `${NAME}` takes it from the environment, so that one file serves many gateways. Where
        /// it is given, each line of the logs has it. Default: the name of the machine and the first listener, such as
        /// `web1:8080`.
        name: Text => NAME,
    }
    required {
        name => "write what this gateway is called: `name: eu-1`",
    }
    short {
        anything => "{name: $}",
    }
}

section! {
    /// A webhook that gets a message when a limit is reached.
    Channel {
        /// An `http` or `https` URL to which messages are posted as JSON. The path of the URL is treated as a secret
        /// and never shown.
        webhook: Text => HTTP_URL,
        /// The shortest time between two messages about the same limit and key.
        every: Spanned<Span> => SOME_TIME = Span(ChannelSettings::EVERY),
    }
    required {
        webhook => "write where messages go: `webhook: https://hooks.example.com/...`",
    }
    short {
        anything => "{webhook: $}",
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
        /// A `CrowdSec` engine to which bans of addresses are reported.
        crowdsec: AlertedLapi,
    }
    short {
        path => "{file: $}",
        anything => "{file: audit.jsonl}",
    }
    rules {
        grammar::one_of(&["file", "redis_stream", "sqlite", "crowdsec"]),
    }
}

section! {
    /// A `CrowdSec` engine that is told of bans of addresses: those that begin at this gateway, and those that are lifted.
    AlertedLapi {
        /// The URL of its Local API.
        url: Text => HTTP_URL,
        /// The name of a machine.
        login: Text,
        /// A file with the password of the machine, one line. `cscli machines add` sets it.
        password_file: Text,
        /// A PEM file with the certificates of the authorities that the API is verified by. Default: the system's.
        ca: Text,
    }
    required {
        url => "write where the Local API listens: `url: http://127.0.0.1:8080`",
        login => "make a machine with `cscli machines add portcullis --auto`, and write its name: `login: portcullis`",
        password_file => "write the password of the machine into a file, and name it: `password_file: crowdsec.pw`",
    }
}

section! {
    /// A stream in the Redis of the `store` section.
    RedisStream {
        /// The key of the stream. `store.redis.key_prefix` is not put before it.
        key: Text,
        /// About how many entries the stream keeps, the latest.
        max_entries: Spanned<u64> => COUNT = crate::record::audit::RedisStream::MAX_ENTRIES,
    }
    required {
        key => "name the stream: `key: portcullis:audit`",
    }
    short {
        anything => "{key: $}",
    }
}

section! {
    /// The metrics of the admin listener.
    Metrics {
        /// How many routes have series of their own, in the order in which they are tried; all others are counted together
        /// under `route="other"`. `off`: none has. Default: every route.
        routes: Spanned<RouteSeries>,
    }
    short {
        number => "{routes: $}",
        off => "{routes: off}",
    }
}

section! {
    /// Spans of requests for OpenTelemetry, over OTLP/HTTP.
    Tracing {
        /// The `http` or `https` URL of a collector. `/v1/traces` is added where it is missing.
        otlp: Text => HTTP_URL,
        /// The share of the requests that is traced, from 0 to 1, where a request does not say itself, by its
        /// `traceparent`, whether it is sampled.
        sample: Spanned<SampleRatio> = SampleRatio::ALL,
    }
    required {
        otlp => "write where spans go: `otlp: http://127.0.0.1:4318`",
    }
    short {
        url => "{otlp: $}",
        anything => "{otlp: \"http://127.0.0.1:4318\"}",
    }
}
