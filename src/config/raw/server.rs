//! The sections about listeners and the process: `listen`, `admin`, `headers`, `log`, `server`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::field::section;
use super::forms::{ListOf, OneOrList};
use crate::config::diagnostic::Mistakes;
use crate::config::raw::forms::{InvalidValue, RawValue, Spanned, Text};
use crate::config::raw::grammar;
use crate::config::raw::scalar::ScalarValue;
use crate::config::yaml::{Content, Node};
use crate::gateway::GatewaySettings;
use crate::listen::bind::UNIX_SOCKET;
use crate::listen::{ConnectionSettings, ListenAddress, ListenerConfig, ListenerSettings};
use crate::record::{LogFormat, LogSettings};
use crate::words::units::{Size, Span};
use crate::words::word::words;

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
        /// Permissions of the Unix socket's file in octal digits. Whoever may write to it may connect.
        mode: Spanned<FileMode> = FileMode(ListenerConfig::MODE),
        /// Require a header of the PROXY protocol, version 1 or 2, at the start of each connection, and accept it
        /// only from one of `client_ip.trusted_proxies`. The source address in it becomes the peer.
        proxy_protocol: Spanned<bool> = ListenerSettings::default().proxy_protocol.is_some(),
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
        "redirect" => "remove it, and let the application redirect",
    }
    rules {
        grammar::filled(&["from"]),
    }
}

words! {
    /// What a listener serves besides requests that are forwarded. It compiles to whether it
    /// answers proxies that ask.
    pub enum Serves {
        Decisions = "decisions",
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
    short {
        anything => "{certificates: [{cert: tls/site.pem, key: tls/site.key}]}",
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
    short {
        on => "{address: 127.0.0.1:9090}",
        number => "{address: 127.0.0.1:$}",
        anything => "{address: $}",
    }
}

section! {
    /// The request log, on standard output, and the operational log, on standard error; or both in one file.
    Log {
        /// The lowest level of the operational log that is written: `error`, `warn`, `info`, `debug` or `trace`.
        level: Spanned<Level> = Level::of(LogSettings::DEFAULT.level),
        /// The format of both logs: `json`; `ecs`, the Elastic Common Schema; `otel`, the log data model of
        /// OpenTelemetry; or `human`. Default: `human` on a terminal, `json` elsewhere.
        format: Spanned<LogFormat>,
        /// Write a line for each request.
        requests: Spanned<bool> = LogSettings::DEFAULT.requests,
        /// Write the query of each request, which may contain tokens and passwords.
        query: Spanned<bool> = LogSettings::DEFAULT.query,
        /// A file to which the lines of both logs are appended instead. A new one is begun when it is moved or removed, and
        /// on SIGUSR1.
        file: Text,
    }
    short {
        off => "{requests: false}",
        on => "{requests: true}",
        level => "{level: $}",
        format => "{format: $}",
        path => "{file: $}",
    }
}

words! {
    /// How important a message is. It compiles to a level of `tracing`.
    pub enum Level {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

impl Level {
    const OF_TRACING: [(Self, tracing::Level); 5] = [
        (Self::Error, tracing::Level::ERROR),
        (Self::Warn, tracing::Level::WARN),
        (Self::Info, tracing::Level::INFO),
        (Self::Debug, tracing::Level::DEBUG),
        (Self::Trace, tracing::Level::TRACE),
    ];

    fn of(level: tracing::Level) -> Self {
        Self::OF_TRACING.into_iter().find(|(_, traced)| *traced == level).expect("there are five").0
    }

    pub fn traced(self) -> tracing::Level {
        Self::OF_TRACING[self as usize].1
    }
}

section! {
    /// Bounds of connections and requests.
    Server {
        /// The longest head of a request; a longer one is answered 431. Also the longest head of an answer where this
        /// is more than 100KiB; a longer one is answered 502.
        max_header_bytes: Spanned<Size> => HEADER_BYTES = Size(ConnectionSettings::DEFAULT.max_header_bytes as u64),
        /// The longest body of a request; a longer one is answered 413. 0 (default): no bound, bodies stream.
        max_body: Spanned<Size>,
        /// How many bytes of a body a key or an outcome may read.
        inspect_body: Spanned<Size> => INSPECTED_BYTES = Size(GatewaySettings::INSPECT_BODY as u64),
        /// How long the gateway waits for clients.
        timeouts: ServerTimeouts,
        /// How many header fields a request may have; more are answered 431. Also how many an answer may have where
        /// this is more than 1000.
        max_headers: Spanned<u64> => HEADERS = ConnectionSettings::DEFAULT.max_headers,
        /// How many client connections may be open at a time. 0 (default): as many as the file descriptors of the
        /// process allow.
        max_connections: Spanned<u64>,
        /// How many connections one client address may have open at a time. 0 (default): no bound.
        max_connections_per_client: Spanned<u64>,
        /// How many requests may be held at a time by `delay` and `tarpit`. Requests beyond that are denied at once.
        max_held: Spanned<u64> => HELD = GatewaySettings::MAX_HELD,
        /// What some clients send and the gateway refuses otherwise: `bare_lf`, lines of a head over HTTP/1.1 that end in LF
        /// without CR; `utf8_target`, letters beyond ASCII in a target, which the application gets percent-encoded. Default:
        /// none.
        accept: OneOrList<Spanned<Accept>>,
    }
}

words! {
    /// What is accepted of clients beyond HTTP. Each compiles to a
    /// setting of its own.
    pub enum Accept {
        BareLf = "bare_lf",
        Utf8Target = "utf8_target",
    }
}

section! {
    /// How long the gateway waits for clients.
    ServerTimeouts {
        /// How long the head of a request may take.
        header: Spanned<Span> => SOME_TIME = Span(ConnectionSettings::DEFAULT.header),
        /// How long reading or writing a body may make no progress.
        body_idle: Spanned<Span> => SOME_TIME = Span(ConnectionSettings::DEFAULT.body_idle),
        /// The lowest speed of a body in bytes per second, measured over each `body_idle` after the first and only
        /// while the gateway waits for the client. 0: no bound.
        body_rate: Spanned<u64> => BODY_RATE = ConnectionSettings::DEFAULT.body_rate,
        /// How long a connection may be idle between two requests.
        keepalive: Spanned<Span> => SOME_TIME = Span(ConnectionSettings::DEFAULT.keepalive),
        /// How long requests under way may take once the gateway stops.
        drain: Spanned<Span> = Span(ConnectionSettings::DEFAULT.drain),
        /// How long the gateway goes on as before when it is told to stop, while `/readyz` answers 503, so that load
        /// balancers notice. At most 1h.
        lame_duck: Spanned<Span> => LAME_DUCK = Span(ConnectionSettings::DEFAULT.lame_duck),
    }
}

// Where a listener is, and who may connect to it.

/// In bytes: what the kernel takes (unix(7)), less the zero byte at its end.
const LONGEST_SOCKET_PATH: usize = 107;

impl ScalarValue for ListenAddress {
    const EXPECTED: &'static str = "an address with a port, or `unix:` and a path";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        if let Some(path) = text.strip_prefix(UNIX_SOCKET) {
            let path = unix_socket_path(path, "unix:/run/portcullis.sock")?;
            return Ok(Self::UnixSocket(path.into()));
        }
        if text.starts_with('/') {
            return Err(InvalidValue::with(
                format!("`{text}` is not an address with a port"),
                format!("write `unix:{text}` for a Unix socket"),
            ));
        }
        let address = SocketAddr::parse(text).map(Self::Ip);
        match (&address, &text.split_whitespace().collect::<Vec<_>>()[..]) {
            (Err(wrong), [first, .., "ssl" | "ssl;"]) => {
                let port = first.rsplit(':').next().unwrap_or_default();
                let listener = format!("{{address: 0.0.0.0:{port}, tls: {{certificates: [{CERTIFICATE}]}}}}");
                Err(InvalidValue::with(wrong.message.clone(), format!("write `{listener}`")))
            }
            _ => address,
        }
    }

    fn schema() -> Value {
        let socket = grammar::unix_socket(UNIX_SOCKET, LONGEST_SOCKET_PATH);
        let mut schema = grammar::text("address with port", &format!("{}|{socket}", grammar::socket_address()));
        schema["examples"] = json!(["0.0.0.0:8080", "[::]:8080", "unix:/run/portcullis.sock"]);
        schema
    }
}

/// The path of a Unix socket: absolute, and no longer than the kernel takes. `example` is how one is written.
pub fn unix_socket_path<'p>(path: &'p str, example: &str) -> Result<&'p str, InvalidValue> {
    let fault = if !path.starts_with('/') {
        "is not an absolute path"
    } else if path.contains(|char: char| char.is_control()) {
        "is not a path: it holds a control character"
    } else if path.len() > LONGEST_SOCKET_PATH {
        "is longer than the 107 bytes that a Unix socket's path may have"
    } else {
        return Ok(path);
    };
    Err(InvalidValue::with(format!("`{path}` {fault}"), format!("write where the socket is: `{example}`")))
}

const CERTIFICATE: &str = "{cert: tls/site.pem, key: tls/site.key}";

/// The permissions of a file, as chmod takes them in digits.
#[derive(Clone, Copy, Debug)]
pub struct FileMode(pub u32);

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{:04o}`", self.0)
    }
}

impl ScalarValue for FileMode {
    const EXPECTED: &'static str = "the permissions of a file, such as `0660`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix('0')).unwrap_or(text);
        let is_mode = digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        match u32::from_str_radix(digits, 8) {
            Ok(mode) if is_mode => Ok(Self(mode)),
            _ => Err(InvalidValue::with(
                format!("`{text}` is not the permissions of a file"),
                "write three octal digits behind a zero, as chmod takes them: `0660` for the gateway's user and group",
            )),
        }
    }

    fn schema() -> Value {
        // Without quotes it is a number for readers of YAML, which leave out its zero.
        let wrong: Vec<u32> = (100..=777).filter(|number| Self::parse(&number.to_string()).is_err()).collect();
        let mut schema = grammar::text("permissions of a file", "(?:0o?)?[0-7]{3}");
        schema["type"] = json!(["string", "integer"]);
        schema["minimum"] = json!(100);
        schema["maximum"] = json!(777);
        schema["not"] = json!({ "enum": wrong });
        schema["examples"] = json!(["0660"]);
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_socket_is_an_absolute_path_behind_its_word() {
        let address = ListenAddress::parse("unix:/run/A file.sock").unwrap();
        assert_eq!(address.to_string(), "unix:/run/A file.sock");
        assert!(matches!(ListenAddress::parse("127.0.0.1:80"), Ok(ListenAddress::Ip(_))));
        for text in
            ["unix:", "unix:run.sock", "unix:@name", "/run/a.sock", "unix:/a\nb", &format!("unix:/{}", "a".repeat(107))]
        {
            assert!(ListenAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mode_is_three_octal_digits() {
        for text in ["0660", "660", "0o660"] {
            assert_eq!(FileMode::parse(text).unwrap().0, 0o660);
        }
        for text in ["066", "6600", "0x1b0", "0680", "rw-rw----", "+660", "01660"] {
            assert!(FileMode::parse(text).is_err(), "{text}");
        }
    }
}
