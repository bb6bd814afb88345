//! The top of the file.

use super::Text;
use super::client::ClientIp;
use super::forms::Many;
use super::forms::Named;
use super::forms::OneOrMany;
use super::limit::Limit;
use super::list::Access;
use super::list::List;
use super::record::Audit;
use super::record::Channel;
use super::route::Route;
use super::section;
use super::server::Admin;
use super::server::HeaderStyle;
use super::server::Listen;
use super::server::Log;
use super::server::Server;
use super::store::Store;
use super::then::DenyResponse;
use super::upstream::Upstream;
use crate::config::raw::Spanned;

section! {
    /// The configuration of portcullis.
    Document {
        /// Where requests come in: an address with a port, or a list of them. HTTP/1.1, and HTTP/2 with prior knowledge.
        listen: OneOrMany<Listen>,
        /// The admin listener: health, metrics and the API. Left out: there is none.
        admin: Admin,
        /// Who asks: which proxies are believed, and how wide a net one client is.
        client_ip: ClientIp,
        /// Where counts are kept. Left out: in memory.
        store: Store,
        /// Where requests go that take no route: a URL, or a name from `upstreams`. May be left out where `upstreams` has one entry.
        upstream: Text,
        /// The applications behind, by name.
        upstreams: Named<Upstream>,
        /// Named sets of addresses or other values, for `access`, `only`, `unless` and `match.client`.
        lists: Named<List>,
        /// Lists that decide before any limit.
        access: Access,
        /// Limits that hold for every request.
        limits: Many<Limit>,
        /// What holds for some requests. The first match wins.
        routes: Many<Route>,
        /// How a denial looks, unless the route or the limit has one of its own.
        deny_response: DenyResponse,
        /// Which rate limit headers responses carry: `ietf` (`RateLimit` and `RateLimit-Policy`), `legacy` (`X-RateLimit-*`), `both` or `off`. `Retry-After` stays.
        headers: Spanned<HeaderStyle>,
        /// Who may be told by `then: {notify: [...]}`, by name.
        notify: Named<Channel>,
        /// Where it is written down what was done to whom.
        audit: Audit,
        /// What is written to the log.
        log: Log,
        /// Bounds of connections and requests.
        server: Server,
    }
    required {
        listen => "say where requests come in: `listen: 0.0.0.0:8080`",
    }
}
