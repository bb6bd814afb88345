//! The top of the file.

use ipnet::IpNet;

use super::field::section;
use super::forms::{ListOf, MapOf, OneOrList};
use super::limit::Limit;
use super::record::{Audit, Channel, Gateway, Metrics, Tracing};
use super::route::Route;
use super::server::{Admin, Listen, Log, Server};
use super::store::Store;
use super::then::DenyResponse;
use crate::config::raw::forms::{Spanned, Text};
use crate::config::raw::grammar;
use crate::config::raw::limit::KeyPart;
use crate::config::raw::store::Upstream;
use crate::gateway::HeaderStyle;
use crate::rules::client::{ForwardingHeader, Prefix};
use crate::rules::jwt::{TokenPlace, Validity};
use crate::wire::crowdsec::ListSource;
use crate::words::units::Span;

section! {
    /// The configuration of portcullis.
    Document {
        /// Where the gateway accepts requests: an address with a port, or a list of them. HTTP/1.1, and HTTP/2 with
        /// prior knowledge; with `tls`, HTTP/2 by ALPN.
        listen: OneOrList<Listen>,
        /// The admin listener: health, metrics and the API. Default: there is none.
        admin: Admin,
        /// What this gateway is called where several are told apart.
        gateway: Gateway,
        /// How the gateway finds the address of a client.
        client_ip: ClientIp,
        /// Where counts are kept. Default: in the memory of this process.
        store: Store,
        /// The default upstream, for requests whose route names none: a URL, or a name from `upstreams`. Not needed
        /// where `upstreams` has one entry.
        upstream: Text => UPSTREAM,
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
        /// A directory with pages for browsers in the place of the gateway's own: `denied.html` for denials and `error.html`
        /// for errors, and before them those in the language of the reader, such as `denied.de.html`.
        pages: Text,
        /// Which rate limit headers responses carry: `ietf` (`RateLimit` and `RateLimit-Policy`), `legacy`
        /// (`X-RateLimit-*`), `both` or `off`. `Retry-After` is sent in any case.
        headers: Spanned<HeaderStyle> = HeaderStyle::default(),
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
    later {
        "include" => "write what it includes into this file, and remove it",
        "networks" => "remove it: `{client_ip: {v4: 24, v6: 48}}` counts clients by a wider network",
        "captchas" => "remove it, and write `challenge: pow`, which asks no provider",
    }
    rules {
        grammar::filled(&["listen"]),
    }
}

section! {
    /// How the gateway finds the address of a client.
    ClientIp {
        /// Addresses or networks of the proxies in front whose forwarding header the gateway believes. Default: none,
        /// so every forwarding header is ignored.
        trusted_proxies: OneOrList<Spanned<IpNet>>,
        /// The header in which a trusted proxy names the client: `x-forwarded-for`, `forwarded`, or a
        /// header that holds one address, such as `cf-connecting-ip`.
        header: Text => FIELD = ForwardingHeader::default(),
        /// IPv4 clients are counted by this many leading bits of their address.
        ipv4_prefix: Spanned<u64> => IPV4_PREFIX = Prefix::DEFAULT.v4,
        /// IPv6 clients are counted by this many leading bits of their address.
        ipv6_prefix: Spanned<u64> => IPV6_PREFIX = Prefix::DEFAULT.v6,
    }
    short {
        addresses => "{trusted_proxies: $}",
        anything => "{trusted_proxies: [10.1.2.0/24], header: x-forwarded-for}",
    }
}

section! {
    /// How tokens (JWT) are verified, so that limits can count by what they claim: `jwt.sub`. It authenticates nobody: the
    /// application still does.
    Jwt {
        /// A file with the public keys of the issuer, a JWK set. The gateway reads it again when it changes.
        jwks_file: Text,
        /// Instead of a file: the URL of the issuer's JWK set, https, or http on this machine. Fetched at the start, every
        /// hour, and when a token names a key that is not known. What is known stays while it cannot be fetched.
        jwks_url: Text => HTTP_URL,
        /// A PEM file with the certificates of the authorities that `jwks_url` is verified by. Default: the system's.
        ca: Text,
        /// What `iss` of a token must be; of several one. Default: anything.
        issuer: OneOrList<Text>,
        /// What `aud` of a token must name; of several one. Default: anything.
        audience: OneOrList<Text>,
        /// Where requests carry their token: `bearer`, `cookie.NAME` or `header.NAME`.
        from: Text => TOKEN_PLACE = TokenPlace::default(),
        /// By how much the clock of the issuer may differ from that of this machine.
        leeway: Spanned<Span> => LEEWAY = Span(Validity::LEEWAY),
    }
    short {
        url => "{jwks_url: $}",
        anything => "{jwks_file: $}",
    }
    rules {
        grammar::one_of(&["jwks_file", "jwks_url"]),
        grammar::not_both("jwks_file", "jwks_url"),
        grammar::not_both("jwks_file", "ca"),
    }
}

section! {
    /// A named set of client addresses, or of values of a selector.
    List {
        /// Addresses and networks that are on the list.
        addresses: OneOrList<Spanned<IpNet>>,
        /// A file with one entry on each line and `#` comments. The gateway reads it again when it changes.
        file: Text,
        /// A `CrowdSec` engine that decides which addresses are on the list.
        crowdsec: FollowedLapi,
        /// The selector whose values the list holds, such as `header.x-api-key`. Default: the client's address.
        of: KeyPart,
    }
    later {
        "url" => "fetch it into a file at times, and write `file:` with its name: it is read again when it changes",
        "every" => "remove it: a `file` is read again when it changes",
        "cache" => "remove it: a `file` is read again when it changes",
        "ca" => "remove it: a `file` is read again when it changes",
        "rdns" => "write the networks that the crawler's owner publishes, into `addresses` or a `file`",
        "sha1" => "remove it",
        "values" => "write them into a file, one on each line, and name it in `file`",
    }
    short {
        addresses => "{addresses: $}",
        anything => "{file: $}",
    }
    rules {
        grammar::one_of(&["addresses", "file", "crowdsec"]),
    }
}

section! {
    /// A `CrowdSec` engine whose decisions a list follows.
    FollowedLapi {
        /// The URL of its Local API.
        url: Text => HTTP_URL,
        /// A file with the key of a bouncer, one line. `cscli bouncers add` makes one; each gateway needs its own.
        key_file: Text,
        /// How often the engine is asked for what has changed.
        every: Spanned<Span> => ASKED_EVERY = Span(ListSource::EVERY),
        /// A PEM file with the certificates of the authorities that the API is verified by. Default: the system's.
        ca: Text,
    }
    required {
        url => "write where the Local API listens: `url: http://127.0.0.1:8080`",
        key_file => "make a key with `cscli bouncers add portcullis`, and write `key_file:` with a file that holds it",
    }
}

section! {
    /// Lists that are looked at before any limit.
    Access {
        /// Clients on these lists pass every limit and ban. `allow` wins over `deny`.
        allow: OneOrList<Text>,
        /// Clients on these lists get 403.
        deny: OneOrList<Text>,
    }
}
