//! An entry of the `upstreams` section.

use super::forms::OneOrList;
use super::section::section;
use super::value::Spanned;
use super::value::Text;
use super::words::words;
use crate::units::Span;

section! {
    /// An application: its servers, and how the gateway uses them.
    Upstream {
        /// URLs of its servers, such as `http://10.0.1.5:8000`, or `http://unix:/run/app.sock` for a Unix socket. The
        /// gateway verifies the certificate of an `https://` server.
        servers: OneOrList<Text>,
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
        /// The time between two checks. Default: 5s.
        every: Spanned<Span>,
        /// How long an answer may take. Default: 2s.
        timeout: Spanned<Span>,
        /// How many good answers in a row make a server healthy. Default: 2.
        healthy: Spanned<u64>,
        /// How many bad answers in a row make a server unhealthy. Default: 3.
        unhealthy: Spanned<u64>,
    }
    required {
        path => "write the path to request: `path: /healthz`",
    }
}

section! {
    /// How long each step towards the application may take.
    UpstreamTimeouts {
        /// Connecting; 504 beyond. Default: 2s.
        connect: Spanned<Span>,
        /// From the end of the request to the head of the answer (504 beyond), and between two parts of the answer's
        /// body. Default: 60s.
        response: Spanned<Span>,
        /// How long an unused connection is kept open. Default: 60s.
        idle: Spanned<Span>,
    }
}

words! {
    /// Which server gets the next request.
    Balance {
        "least_requests" => LeastRequests,
        "round_robin" => RoundRobin,
        "client_ip" => ClientIp,
    }
}
