//! Questions as proxies ask them.

use std::net::SocketAddr;

use crate::support::{Gateway, Request};

/// A gateway that answers questions, and forwards requests on another listener. `rules` are the rest of its configuration.
pub(crate) fn asked(rules: &str) -> Gateway {
    Gateway::start(format!(
        "listen:\n  - {{address: 127.0.0.1:0, serves: decisions}}\n  - 127.0.0.1:0\n{rules}\nadmin: {{address: 127.0.0.1:0}}"
    ))
}

/// A question about a request, as Caddy and Traefik ask it.
pub(crate) fn ask(gateway: &Gateway, method: &str, target: &str) -> Request {
    ask_at(gateway.address(), method, target)
}

pub(crate) fn ask_at(address: SocketAddr, method: &str, target: &str) -> Request {
    bare(address)
        .header("X-Forwarded-Method", method)
        .header("X-Forwarded-Proto", "https")
        .header("X-Forwarded-Host", "app.example")
        .header("X-Forwarded-Uri", target)
        .header("X-Forwarded-For", "203.0.113.9")
}

/// A question about a request, as nginx asks it.
pub(crate) fn ask_as_nginx(gateway: &Gateway, method: &str, target: &str) -> Request {
    bare(gateway.address())
        .target("/auth/nginx")
        .host("app.example")
        .header("X-Original-Method", method)
        .header("X-Original-URI", target)
        .header("X-Forwarded-For", "203.0.113.9")
}

/// A question that describes nothing yet.
pub(crate) fn bare(address: SocketAddr) -> Request {
    Request::new(address, "GET", "/auth").host("portcullis")
}

/// One login a minute for each client.
pub(crate) const ONE_LOGIN: &str = "upstream: http://127.0.0.1:9\nroutes:\n  - {name: login, match: POST /login, limits: [{name: pace, key: client_ip, rate: 1/minute}]}";
