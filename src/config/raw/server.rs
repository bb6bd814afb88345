//! The sections about listeners and the process: `listen`, `admin`, `headers`, `log`, `server`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ipnet::IpNet;
use serde_json::Value;
use serde_json::json;

use super::forms::ListOf;
use super::forms::OneOrList;
use super::listen_address::FileMode;
use super::section::section;
use super::value::RawValue;
use super::value::Spanned;
use super::value::Text;
use super::words::words;
use crate::config::mistakes::Mistakes;
use crate::config::yaml::Content;
use crate::config::yaml::Node;
use crate::listen::ListenAddress;
use crate::units::Size;
use crate::units::Span;

/// An entry of `listen`: an address, or a map with the address and more.
#[derive(Clone, Debug)]
pub enum Listen {
    Address(Spanned<ListenAddress>),
    Listener(Box<Listener>),
}

impl Listen {
    pub fn address(&self) -> Option<&Spanned<ListenAddress>> {
        match self {
            Self::Address(address) => Some(address),
            Self::Listener(listener) => listener.address.get(),
        }
    }

    /// Whether requests are forwarded there.
    pub fn forwards(&self) -> bool {
        match self {
            Self::Address(_) => true,
            Self::Listener(listener) => listener.serves.is_absent(),
        }
    }
}

impl RawValue for Listen {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match node.content {
            Content::Map(_) => Listener::read(node, mistakes).map(Box::new).map(Self::Listener),
            _ => Spanned::read(node, mistakes).map(Self::Address),
        }
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "anyOf": [Spanned::<ListenAddress>::schema(definitions), Listener::schema(definitions)] })
    }
}

section! {
    /// A listener: an address where the gateway accepts requests.
    Listener {
        /// An IP address and a port, such as `0.0.0.0:8080`, or `unix:` and the absolute path of a Unix socket. Peers that
        /// connect to a Unix socket count as 127.0.0.1.
        address: Spanned<ListenAddress>,
        /// Permissions of the Unix socket's file in octal digits. Whoever may write to it may connect. Default: `0660`.
        mode: Spanned<FileMode>,
        /// Require a header of the PROXY protocol, version 1 or 2, at the start of each connection, and accept it
        /// only from one of `client_ip.trusted_proxies`. The source address in it becomes the peer. Default: false.
        proxy_protocol: Spanned<bool>,
        /// `decisions`: requests are not forwarded here. Proxies in front of applications ask whether a request may pass, by
        /// forward auth. Default: requests are forwarded.
        serves: Spanned<Serves>,
        /// Networks of the proxies that may ask here. Connections of others are closed. Only with `serves`. Default:
        /// loopback.
        from: OneOrList<Spanned<IpNet>>,
        /// TLS with HTTP/1.1 and HTTP/2. Default: none, requests come in clear.
        tls: ListenerTls,
    }
    required {
        address => "write where to listen: `address: 0.0.0.0:8080`",
    }
    later {
        "http3" => "remove it: HTTP/3 clients also use HTTP/2",
    }
}

words! {
    /// What a listener serves besides requests that are forwarded.
    Serves {
        "decisions" => Decisions,
    }
}

section! {
    /// TLS for clients.
    ListenerTls {
        /// Certificates. The one for the name that the client asks for (SNI) is used, the first one where none
        /// matches. The gateway reads the files again when they change.
        certificates: ListOf<CertificateFiles>,
        /// A file with CA certificates in PEM. Clients must present a certificate that one of them has issued.
        /// Default: clients need no certificate.
        client_ca: Text,
    }
    required {
        certificates => "write `certificates: [{cert: tls/site.pem, key: tls/site.key}]`",
    }
    later {
        "acme" => "get the certificate with an ACME client, and name its files in `certificates`: they are read again when they change",
    }
}

section! {
    /// A certificate and its key.
    CertificateFiles {
        /// A file with the certificate in PEM, followed by the intermediate certificates.
        cert: Text,
        /// A file with the private key in PEM, without a password.
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
        /// A file with the token of the API. Required where the address is not loopback. The gateway reads it again
        /// when it changes.
        token_file: Text,
    }
    required {
        address => "write where to listen: `address: 127.0.0.1:9090`",
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
    /// The request log, on standard output, and the operational log, on standard error.
    Log {
        /// The lowest level of the operational log that is written: `error`, `warn`, `info` (default), `debug` or
        /// `trace`.
        level: Spanned<Level>,
        /// The format of both logs: `json`; `ecs`, the Elastic Common Schema; `otel`, the log data model of
        /// OpenTelemetry; or `human`. Default: `human` on a terminal, `json` elsewhere.
        format: Spanned<Format>,
        /// Write a line for each request. Default: true.
        requests: Spanned<bool>,
        /// Write the query of each request, which may contain tokens and passwords. Default: false.
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
    /// The format of log lines.
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
        /// The longest head of a request; a longer one is answered 431. Also the longest head of an answer where this
        /// is more than 100KiB; a longer one is answered 502. Default: 64KiB.
        max_header_bytes: Spanned<Size>,
        /// The longest body of a request; a longer one is answered 413. 0 (default): no bound, bodies stream.
        max_body: Spanned<Size>,
        /// How many bytes of a body a key or an outcome may read. Default: 64KiB.
        inspect_body: Spanned<Size>,
        /// How long the gateway waits for clients.
        timeouts: ServerTimeouts,
        /// How many header fields a request may have; more are answered 431. Also how many an answer may have where
        /// this is more than 1000. Default: 100.
        max_headers: Spanned<u64>,
        /// How many client connections may be open at a time. 0 (default): as many as the file descriptors of the
        /// process allow.
        max_connections: Spanned<u64>,
        /// How many connections one client address may have open at a time. 0 (default): no bound.
        max_connections_per_client: Spanned<u64>,
        /// How many requests may be held at a time by `delay` and `tarpit`. Requests beyond that are denied at once.
        /// Default: 10000.
        max_held: Spanned<u64>,
        /// What some clients send and the gateway refuses otherwise: `bare_lf`, lines of a head over HTTP/1.1 that end in LF
        /// without CR; `utf8_target`, letters beyond ASCII in a target, which the application gets percent-encoded. Default:
        /// none.
        accept: OneOrList<Spanned<Accept>>,
    }
}

words! {
    /// What is accepted of clients beyond HTTP.
    Accept {
        "bare_lf" => BareLf,
        "utf8_target" => Utf8Target,
    }
}

section! {
    /// How long the gateway waits for clients.
    ServerTimeouts {
        /// How long the head of a request may take. Default: 10s.
        header: Spanned<Span>,
        /// How long reading or writing a body may make no progress. Default: 30s.
        body_idle: Spanned<Span>,
        /// The lowest speed of a body in bytes per second, measured over each `body_idle` after the first and only
        /// while the gateway waits for the client. 0: no bound. Default: 100.
        body_rate: Spanned<u64>,
        /// How long a connection may be idle between two requests. Default: 75s.
        keepalive: Spanned<Span>,
        /// How long requests under way may take once the gateway stops. Default: 30s.
        drain: Spanned<Span>,
        /// How long the gateway goes on as before when it is told to stop, while `/readyz` answers 503, so that load
        /// balancers notice. At most 1h. Default: 0s.
        lame_duck: Spanned<Span>,
    }
}
