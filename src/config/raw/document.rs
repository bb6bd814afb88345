//! The top of the file.

use super::client::ClientIp;
use super::forms::ListOf;
use super::forms::MapOf;
use super::forms::OneOrList;
use super::jwt::Jwt;
use super::limit::Limit;
use super::list::Access;
use super::list::List;
use super::record::Audit;
use super::record::Channel;
use super::record::Metrics;
use super::record::Tracing;
use super::route::Route;
use super::section::section;
use super::server::Admin;
use super::server::HeaderStyle;
use super::server::Listen;
use super::server::Log;
use super::server::Server;
use super::store::Store;
use super::then::DenyResponse;
use super::upstream::Upstream;
use super::value::Spanned;
use super::value::Text;

section! {
    /// The configuration of portcullis.
    Document {
        /// Where the gateway accepts requests: an address with a port, or a list of them. HTTP/1.1, and HTTP/2 with
        /// prior knowledge; with `tls`, HTTP/2 by ALPN.
        listen: OneOrList<Listen>,
        /// The admin listener: health, metrics and the API. Default: there is none.
        admin: Admin,
        /// How the gateway finds the address of a client.
        client_ip: ClientIp,
        /// Where counts are kept. Default: in the memory of this process.
        store: Store,
        /// The default upstream, for requests whose route names none: a URL, or a name from `upstreams`. Not needed
        /// where `upstreams` has one entry.
        upstream: Text,
        /// The applications behind the gateway, by name.
        upstreams: MapOf<Upstream>,
        /// Named sets of addresses or other values, for `access`, `only`, `unless` and `match.client`.
        lists: MapOf<List>,
        /// Lists that are looked at before any limit.
        access: Access,
        /// Limits that hold for every request.
        limits: ListOf<Limit>,
        /// Rules for some requests. The first route that matches a request applies to it.
        routes: ListOf<Route>,
        /// The response to a denied request, unless the route or the limit has its own.
        deny_response: DenyResponse,
        /// Which rate limit headers responses carry: `ietf` (default: `RateLimit` and `RateLimit-Policy`), `legacy`
        /// (`X-RateLimit-*`), `both` or `off`. `Retry-After` is sent in any case.
        headers: Spanned<HeaderStyle>,
        /// How tokens (JWT) are verified, for limits that count by what they claim: `jwt.sub`.
        jwt: Jwt,
        /// Webhooks by name, for `then: {notify: [...]}`.
        notify: MapOf<Channel>,
        /// The audit trail: where denials, delays, bans, unbans and reloads are recorded.
        audit: Audit,
        /// The request log and the operational log.
        log: Log,
        /// The metrics of the admin listener.
        metrics: Metrics,
        /// Spans of requests for OpenTelemetry. Default: no request is traced.
        tracing: Tracing,
        /// Bounds of connections and requests.
        server: Server,
    }
    required {
        listen => "write where to accept requests: `listen: 0.0.0.0:8080`",
    }
}
