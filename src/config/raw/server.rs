//! The sections about sockets and the process: `listen`, `admin`, `headers`, `log`, `server`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use serde_json::json;

use super::Raw;
use super::Spanned;
use super::Text;
use super::forms::Many;
use super::leaf::words;
use super::section;
use crate::config::diagnostic::Mistakes;
use crate::config::yaml::Content;
use crate::config::yaml::Node;
use crate::units::Size;
use crate::units::Span;

/// One entry of `listen`: an address, or a map with more about it.
#[derive(Clone, Debug)]
pub enum Listen {
    Address(Spanned<SocketAddr>),
    Described(Box<Listener>),
}

impl Raw for Listen {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match node.content {
            Content::Map(_) => Listener::read(node, mistakes).map(Box::new).map(Self::Described),
            _ => Spanned::read(node, mistakes).map(Self::Address),
        }
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "anyOf": [Spanned::<SocketAddr>::schema(definitions), Listener::schema(definitions)] })
    }
}

section! {
    /// An address where requests come in.
    Listener {
        /// An IP address and a port, such as `0.0.0.0:8080`.
        address: Spanned<SocketAddr>,
        /// Whether each connection has to begin with a header of the PROXY protocol, version 1 or 2, and to be from one of
        /// `client_ip.trusted_proxies`: the source it names is the peer. Default: false.
        proxy_protocol: Spanned<bool>,
        /// TLS: HTTP/1.1 and HTTP/2, as each client likes. Left out: in clear.
        tls: ListenerTls,
    }
    required {
        address => "say where to listen: `address: 0.0.0.0:8080`",
    }
}

section! {
    /// TLS towards clients.
    ListenerTls {
        /// Chosen by the name the client asks for (SNI), the first one without a match. Read again when the files change.
        certificates: Many<CertificateFiles>,
        /// A file with certificates of authorities, in PEM: clients must present a certificate that one of them has issued.
        client_ca: Text,
    }
    required {
        certificates => "write `certificates: [{cert: tls/site.pem, key: tls/site.key}]`",
    }
}

section! {
    /// A certificate to show to clients.
    CertificateFiles {
        /// A file with the certificate and those between it and its authority, in PEM, its own first.
        cert: Text,
        /// A file with its private key, in PEM, without a password.
        key: Text,
    }
    required {
        cert => "name the file: `cert: tls/site.pem`",
        key => "name the file: `key: tls/site.key`",
    }
}

section! {
    /// The admin listener: health, metrics and the API.
    Admin {
        /// An IP address and a port, such as `127.0.0.1:9090`.
        address: Spanned<SocketAddr>,
        /// A file with the token of the API. Required where the address is not loopback; read again when it changes.
        token_file: Text,
    }
    required {
        address => "say where to listen: `address: 127.0.0.1:9090`",
    }
}

words! {
    /// Which rate limit headers responses carry.
    HeaderStyle {
        "ietf" => Ietf,
        "legacy" => Legacy,
        "both" => Both,
        "off" => Off,
    }
}

section! {
    /// What is written to the log.
    Log {
        /// The least important messages that are written: `error`, `warn`, `info` (default), `debug` or `trace`.
        level: Spanned<Level>,
        /// `json`; `ecs`, the Elastic Common Schema; `otel`, the log data model of OpenTelemetry; or `human`. Left out: human
        /// on a terminal, JSON elsewhere.
        format: Spanned<Format>,
        /// Whether each request is a line. Default: true.
        requests: Spanned<bool>,
        /// Whether the line of a request has its query, which may hold tokens and passwords. Default: false.
        query: Spanned<bool>,
    }
}

words! {
    /// How important a message is.
    Level {
        "error" => Error,
        "warn" => Warn,
        "info" => Info,
        "debug" => Debug,
        "trace" => Trace,
    }
}

words! {
    /// For whom log lines are written.
    Format {
        "json" => Json,
        "ecs" => Ecs,
        "otel" => Otel,
        "human" => Human,
    }
}

section! {
    /// Bounds of connections and requests.
    Server {
        /// The longest head of a request, and of an answer where it is more than 100KiB. Default: 64KiB.
        max_header_bytes: Spanned<Size>,
        /// The longest body that passes; 0 (default): any, bodies stream.
        max_body: Spanned<Size>,
        /// How much of a body a key or an outcome may read. Default: 64KiB.
        inspect_body: Spanned<Size>,
        /// How long clients may take.
        timeouts: ServerTimeouts,
        /// The most header lines of a request, 431 beyond, and of an answer where it is more than 1000. Default: 100.
        max_headers: Spanned<u64>,
        /// The most connections at a time; 0 (default): as many as descriptors allow.
        max_connections: Spanned<u64>,
        /// The most connections of one client address at a time; 0 (default): no bound.
        max_connections_per_client: Spanned<u64>,
        /// The most requests that are held at a time, by `delay` and `tarpit`; those beyond are denied at once. Default: 10000.
        max_held: Spanned<u64>,
    }
}

section! {
    /// How long clients may take.
    ServerTimeouts {
        /// For the head of a request. Default: 10s.
        header: Spanned<Span>,
        /// Reading or writing a body without progress. Default: 30s.
        body_idle: Spanned<Span>,
        /// The least bytes per second of a body that is read or written, over each `body_idle` after the first, while
        /// the client is waited for; 0: any. Default: 100.
        body_rate: Spanned<u64>,
        /// Between two requests on a connection. Default: 75s.
        keepalive: Spanned<Span>,
        /// How long requests under way may take once the gateway is stopping. Default: 30s.
        drain: Spanned<Span>,
        /// How long the gateway goes on as before when it is told to stop, but for `/readyz`, which answers 503: until load
        /// balancers have noticed. At most 1h. Default: 0s.
        lame_duck: Spanned<Span>,
    }
}
