//! The text of advice: the observation, and the line to write.

use super::UntrustedPeer;
use crate::record::advice::{
    BusiestClient, NearPath, ObservedLimit, ObservedRoute, UnavailableKeys, UnlimitedLogin, UnseenRoute,
};
use crate::rules::limit::Missing;
use crate::words::clock::Timestamp;
use crate::words::recipes::Recipe;

/// Advice that holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Finding {
    /// The observation.
    pub(super) message: String,
    /// The line to write.
    pub(super) help: String,
}

impl Finding {
    /// `part` of the last `all` requests name their client. `peers` sent many of them.
    pub(super) fn untrusted_forwarding(all: u64, part: u64, peers: &[&UntrustedPeer]) -> Self {
        let addresses: Vec<_> = peers.iter().map(|peer| peer.address.to_string()).collect();
        let (peers, header) = match peers {
            [] => ("many different peers".to_owned(), None),
            [first, ..] => (addresses.join(" and "), Some(&*first.header)),
        };
        let in_header = header.map_or_else(|| "a forwarding header".to_owned(), |header| format!("`{header}`"));
        // The other one is the default.
        let setting = header.filter(|header| *header != "x-forwarded-for");
        let setting = setting.map(|header| format!(", header: {header}")).unwrap_or_default();
        let proxies = if addresses.is_empty() { "ADDRESS".to_owned() } else { yaml(&addresses) };
        Self {
            message: format!(
                "{part} of the last {all} requests name their client in {in_header}, and come from {peers}, not in \
                 trusted_proxies: the header is ignored, and all clients behind a proxy count as one"
            ),
            help: format!("if that is a proxy of yours, write `client_ip: {{trusted_proxies: [{proxies}]{setting}}}`"),
        }
    }

    pub(super) fn one_client(BusiestClient { client, is_trusted_proxy, requests, all }: &BusiestClient) -> Self {
        let seen = format!("{client} sent {requests} of the last {all} requests");
        if *is_trusted_proxy {
            return Self {
                message: format!(
                    "{seen}, and names no client: it is in trusted_proxies, and all clients behind it count as one"
                ),
                help:
                    "let it send X-Forwarded-For, or write the header that it sends: `client_ip: {header: x-real-ip}`"
                        .to_owned(),
            };
        }
        // Not each address of a network is the proxy.
        let proxy = if client.contains('/') { "ADDRESS".to_owned() } else { yaml(std::slice::from_ref(client)) };
        Self {
            message: format!("{seen}: all clients behind it count as one"),
            help: format!("if that is a proxy or a load balancer, write `client_ip: {{trusted_proxies: [{proxy}]}}`"),
        }
    }

    /// `part` of the last `all` requests that met the limit lack this field.
    pub(super) fn missing_field(limit: &ObservedLimit, field: &str, all: u64, part: u64) -> Self {
        let name = &limit.name;
        let therefore = match limit.missing {
            Missing::Deny => "they are denied",
            Missing::Count | Missing::Skip => "they share one budget",
        };
        let help = match renamed(limit, field) {
            Some(key) => format!(
                "write the name that the application's form has in place of `{field}` in the key of {name}, `{key}`, \
                 and match only the requests that log in"
            ),
            None => format!(
                "match only the requests that have {field}, or leave the others out with `missing: skip` on {name}"
            ),
        };
        Self { message: format!("{part} of the last {all} requests that met {name} lack {field}: {therefore}"), help }
    }

    /// None of the last `all` names that met the limit matches its pattern.
    pub(super) fn pattern(limit: &ObservedLimit, pattern: &str, all: u64) -> Self {
        let name = &limit.name;
        Self {
            message: format!(
                "none of the last {all} names that met {name} matches its pattern `{pattern}`: they share one budget,                  shown as (other)"
            ),
            help: format!(
                "write a `pattern` on {name} that whole names match, in the case and form in which they are compared, such                  as `[a-z0-9._-]+`; `portcullis explain` shows what a name becomes"
            ),
        }
    }

    /// `part` of the last `all` answers on the route were neither a success nor a failure.
    pub(super) fn outcome(ObservedRoute { name, .. }: &ObservedRoute, all: u64, part: u64) -> Self {
        Self {
            message: format!("{part} of the last {all} answers on {name} match neither side of its outcome"),
            help: "write what the application answers to a login, and what only a success has: \
                   `outcome: {success: {status: 302, header: {location: \"/account*\"}}, otherwise: failure}`"
                .to_owned(),
        }
    }

    /// So many new keys since the last look.
    pub(super) fn store_full(turned_away: u64) -> Self {
        Self {
            message: format!(
                "the store has no room for new keys, because each key in it denies requests: {turned_away} more of them were \
                 denied, whatever was counted"
            ),
            help: "raise `store.memory.max_keys`, or count by fewer keys: an attacker who invents keys fills the store, and a \
                   network (`client_ip: {prefix: ...}`) is one key"
                .to_owned(),
        }
    }

    pub(super) fn never_asked_for(NearPath { route, pattern, method, path }: &NearPath) -> Self {
        Self {
            message: format!("nobody has asked for {route}, which is for {pattern}, and many requests go to {path}"),
            help: format!("if that is what {route} is for, write `match: {method} {path}` on it"),
        }
    }

    pub(super) fn unlimited_login(UnlimitedLogin { path, requests, configured }: &UnlimitedLogin) -> Self {
        let seen = format!("{requests} requests `POST {path}` met no limit that counts logins");
        let recipe = Recipe::command_for(path);
        let (message, rule) = match configured {
            Some(login) => {
                let (route, at) = (&login.route, &login.path);
                (format!("{seen}: {route} is for {at}"), Some(format!("write `match: POST {path}` on {route}")))
            }
            None => (format!("{seen}, and no route is for them"), None),
        };
        let recipe = recipe.map(|command| format!("begin with `{command}`"));
        let help = [rule, recipe].into_iter().flatten().collect::<Vec<_>>().join(", or ");
        Self { message, help: format!("if that is a login, {help}") }
    }

    pub(super) fn unseen(route: &UnseenRoute) -> Self {
        let UnseenRoute { name, waiting, concurrent, knows_clients, learns_sessions, is_of_domain } = route;
        let mut therefore = Vec::new();
        if !waiting.is_empty() {
            therefore.push(format!("{} counts every request as if its answer never came", waiting.join(" and ")));
        }
        if *knows_clients {
            therefore.push("no client becomes a known one".to_owned());
        }
        if *learns_sessions {
            therefore.push("no session is learned".to_owned());
        }
        if !concurrent.is_empty() {
            therefore.push(format!("{} is left out", concurrent.join(" and ")));
        }
        let therefore = therefore.join(", ");
        if *is_of_domain {
            return Self {
                message: format!(
                    "a proxy asks about descriptors of {name}, and the answers and ends of its requests are not seen \
                     here: {therefore}"
                ),
                help: format!(
                    "limit {name} by a `rate` and `count: requests`, or let Envoy ask about the requests with ext_proc, \
                     which shows answers and ends"
                ),
            };
        }
        Self {
            message: format!(
                "a proxy asks about requests of {name} and forwards them itself, so their answers and ends are not seen \
                 here: {therefore}"
            ),
            help: format!(
                "let portcullis forward the requests of {name}, or limit them by `count: requests` without \
                 `known_clients` and `sessions`"
            ),
        }
    }

    pub(super) fn unavailable_keys(UnavailableKeys { source, reason, are_known }: &UnavailableKeys) -> Self {
        let therefore = if *are_known {
            "the keys that are known stay in force, and tokens of new ones do not verify"
        } else {
            "no key is known: no token verifies, and requests count as without one"
        };
        Self {
            message: format!("the keys of {source} cannot be had: {reason}; {therefore}"),
            help: format!("look whether `curl -i {source}` answers 200 with a JWK set from this machine"),
        }
    }

    /// No request met the limit while `passed` were forwarded, `on_routes` of them on its routes.
    pub(super) fn never_counted(limit: &ObservedLimit, passed: u64, on_routes: u64) -> Self {
        let ObservedLimit { name, routes, .. } = limit;
        let on = if routes.is_empty() { String::new() } else { format!(" (on {})", routes.join(", ")) };
        let seen = format!("{name}{on} has counted nothing while {passed} requests passed");
        if let Some(domain) = &limit.domain {
            return Self::domain_never_counted(limit, domain, &seen, on_routes);
        }
        if on_routes > 0 && limit.missing == Missing::Skip {
            let key = limit.login_field.as_deref().and_then(|field| renamed(limit, field));
            let key = key.map(|key| format!("the name that requests have for it, `{key}`, or ")).unwrap_or_default();
            let parts = limit.key.join(", ");
            let (those, lack) =
                if on_routes == 1 { ("one".to_owned(), "lacks") } else { (on_routes.to_string(), "lack") };
            return Self {
                message: format!(
                    "{seen}: the {those} that it is for {lack} a part of its key ({parts}), and it says `missing: skip`"
                ),
                help: format!("write {key}`missing: count` on {name}"),
            };
        }
        let of = if routes.is_empty() { "its route".to_owned() } else { routes.join(", ") };
        Self {
            message: seen,
            help: format!(
                "write the method and the path that such a request has in {of}, `match: POST /PATH`, before any route \
                 that matches it too; `portcullis explain -X POST URL` says which route it takes now"
            ),
        }
    }

    /// No descriptor in the last `calls` calls of its domain met the limit.
    fn domain_never_counted(limit: &ObservedLimit, domain: &str, seen: &str, calls: u64) -> Self {
        let ObservedLimit { name, key, .. } = limit;
        let renamed = key.iter().map(|_| "descriptor.NAME").collect::<Vec<_>>().join(", ");
        let renamed = if let [_] = &key[..] { renamed } else { format!("[{renamed}]") };
        Self {
            message: format!(
                "{seen}: no descriptor in the {calls} calls of {domain} has all parts of its key ({})",
                key.join(", ")
            ),
            help: format!(
                "write the names that the entries of a descriptor have in the key of {name}, `key: {renamed}`; \
                 `portcullis explain --as rls {domain} KEY=VALUE` says which limits a descriptor meets"
            ),
        }
    }
}

/// The key with a placeholder for the name of this field: `key: [client_ip, param.NAME]`. `None`: the field has no name of
/// its own.
fn renamed(limit: &ObservedLimit, field: &str) -> Option<String> {
    let (kind, _) = field.split_once('.').filter(|(kind, _)| *kind != "basic")?;
    let parts = limit.key.iter().map(|part| if part == field { format!("{kind}.NAME") } else { part.clone() });
    let parts: Vec<_> = parts.collect();
    Some(if let [only] = &parts[..] { format!("key: {only}") } else { format!("key: [{}]", parts.join(", ")) })
}

/// Addresses in a list of YAML. The colons of IPv6 need quotes.
fn yaml(addresses: &[String]) -> String {
    let quoted = |address: &String| if address.contains(':') { format!("\"{address}\"") } else { address.clone() };
    addresses.iter().map(quoted).collect::<Vec<_>>().join(", ")
}

// One piece of advice.

/// A probable misconfiguration, and the line to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Advice {
    pub kind: AdviceKind,
    /// The observation, with its numbers.
    pub message: String,
    /// Since when, by the wall clock.
    pub since: Timestamp,
    pub limit: Option<String>,
    pub route: Option<String>,
    /// The line to write.
    pub help: String,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum AdviceKind {
    /// A peer that is no trusted proxy names its client.
    UntrustedForwarding,
    /// Nearly all requests come from one address.
    OneClient,
    /// Half of the requests lack the login field that a limit counts by.
    MissingField,
    /// No name matches the `pattern` of a limit.
    PatternMatchesNothing,
    /// The answers match neither side of an outcome.
    OutcomeMatchesNeither,
    /// No request has met the limit.
    LimitNeverCounted,
    /// A limited route had no request, while a path much like its own is asked for.
    RouteNeverAskedFor,
    /// Logins at a path that ends like that of a route or a recipe met no limit that counts logins.
    UnlimitedLogin,
    /// A proxy asks about requests of a route with rules that only the answer of the application, or the end of a request,
    /// can satisfy.
    AnswersUnseen,
    /// The keys that tokens are verified with cannot be fetched.
    KeysUnavailable,
    /// New keys find no room in the store.
    StoreFull,
    /// The configuration on disk has mistakes, so that the one before stays in force.
    ReloadRefused,
    /// A reload has changed settings that only a start brings into force.
    WaitsForStart,
    /// A warning of `check`.
    Check,
}

impl AdviceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UntrustedForwarding => "untrusted_forwarding",
            Self::OneClient => "one_client",
            Self::MissingField => "missing_field",
            Self::PatternMatchesNothing => "pattern_matches_nothing",
            Self::OutcomeMatchesNeither => "outcome_matches_neither",
            Self::LimitNeverCounted => "limit_never_counted",
            Self::RouteNeverAskedFor => "route_never_asked_for",
            Self::UnlimitedLogin => "unlimited_login",
            Self::AnswersUnseen => "answers_unseen",
            Self::KeysUnavailable => "keys_unavailable",
            Self::StoreFull => "store_full",
            Self::ReloadRefused => "reload_refused",
            Self::WaitsForStart => "waits_for_start",
            Self::Check => "check",
        }
    }
}
