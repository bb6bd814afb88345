//! An entry of the `upstreams` section.

use super::Spanned;
use super::Text;
use super::forms::OneOrMany;
use super::leaf::words;
use super::section;
use crate::units::Span;

section! {
    /// An application: its servers, and how they are used.
    Upstream {
        /// URLs of its servers, such as `http://10.0.1.5:8000`. `https://` verifies.
        servers: OneOrMany<Text>,
        /// Who gets the next request: `least_requests` (default), `round_robin`, or `client_ip`: a client stays with its server.
        balance: Spanned<Balance>,
        /// The Host that the application sees: `preserve` (default) for the client's, or a fixed host name.
        host: Text,
        /// How servers are asked whether they are well. Left out: they are not.
        health: Health,
        /// How long each step may take.
        timeouts: UpstreamTimeouts,
        /// How servers at `https://` are verified.
        tls: UpstreamTls,
        /// HTTP/2 to the servers: agreed on in TLS, and spoken at once at `http://`. Default: false.
        http2: Spanned<bool>,
    }
    required {
        servers => "say where the application answers: `servers: [http://127.0.0.1:8000]`",
    }
}

section! {
    /// How servers at `https://` are verified.
    UpstreamTls {
        /// A PEM file with the authorities that vouch for the servers. Left out: those that the system believes.
        ca: Text,
        /// The name that certificates must be for, and that servers are asked for. Left out: the host in the URL.
        server_name: Text,
    }
}

section! {
    /// How servers are asked whether they are well.
    Health {
        /// The path that is asked for; an answer of 200 to 399 is good.
        path: Text,
        /// How often. Default: 5s.
        every: Spanned<Span>,
        /// How long an answer may take. Default: 2s.
        timeout: Spanned<Span>,
        /// So many good answers in a row make a server healthy. Default: 2.
        healthy: Spanned<u64>,
        /// So many bad answers in a row make it unhealthy. Default: 3.
        unhealthy: Spanned<u64>,
    }
    required {
        path => "say what to ask for: `path: /healthz`",
    }
}

section! {
    /// How long each step towards an application may take.
    UpstreamTimeouts {
        /// To connect. Default: 2s.
        connect: Spanned<Span>,
        /// From the request sent to the head of the answer, and between two parts of its body. Default: 60s.
        response: Spanned<Span>,
        /// How long an unused connection is kept. Default: 60s.
        idle: Spanned<Span>,
    }
}

words! {
    /// Who gets the next request.
    Balance {
        "least_requests" => LeastRequests,
        "round_robin" => RoundRobin,
        "client_ip" => ClientIp,
    }
}
