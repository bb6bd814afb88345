//! An entry of the `routes` section and its `match`.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::forms::ListOf;
use super::forms::MapOf;
use super::forms::OneOrList;
use super::limit::EntrySet;
use super::limit::Limit;
use super::outcome::KnownClients;
use super::outcome::Outcome;
use super::section::section;
use super::sessions::Sessions;
use super::then::DenyResponse;
use super::value::RawValue;
use super::value::Spanned;
use super::value::Text;
use crate::config::mistakes::Mistakes;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

section! {
    /// Rules for the requests that match. The first route that matches a request applies to it.
    Route {
        /// Its name in logs and metrics. Default: the text of its `match`.
        name: Text,
        /// Which requests: `POST /login` for short, or a map of conditions that must all hold.
        r#match: Match,
        /// Compare letters of the path with case. Default: false.
        case_sensitive: Spanned<bool>,
        /// Where these requests go: a URL, or a name from `upstreams`. Default: the default upstream.
        upstream: Text,
        /// Names of lists. A client that is on none of them gets 403.
        only: OneOrList<Text>,
        /// What the application's answers mean, for limits that count failures or successes.
        outcome: Outcome,
        /// Clients that have logged in here before.
        known_clients: KnownClients,
        /// Who signs in here: which cookies and tokens of a success are sessions of the account.
        sessions: Sessions,
        /// Limits for these requests, beside those for every request.
        limits: ListOf<Limit>,
        /// The response to a request that is denied on this route.
        deny_response: DenyResponse,
        /// In a domain: descriptors that are denied whatever was counted.
        deny: ListOf<DeniedDescriptor>,
    }
    required {
        r#match => "write which requests it is for: `match: POST /login`, or `match: /*` for all",
    }
}

section! {
    /// Descriptors that a domain denies.
    DeniedDescriptor {
        /// Entries of a descriptor and globs for their values, all of which it must have.
        descriptor: MapOf<Text>,
        /// Entries of a descriptor and one or several globs, none of which it may have.
        except: MapOf<OneOrList<Text>>,
        /// Whether it may have entries beside those of `descriptor`: `at_least` these (default), or `exact`.
        entries: Spanned<EntrySet>,
    }
    required {
        descriptor => "name the entries: `descriptor: {remote_address: 198.51.100.7}`",
    }
}

/// The condition of a route, short or long.
#[derive(Clone, Debug)]
pub enum Match {
    /// `POST /login`
    Short(Text),
    Long(Box<Conditions>),
}

section! {
    /// Conditions that must all hold.
    Conditions {
        /// Methods, compared without case. HEAD matches where GET does.
        methods: OneOrList<Text>,
        /// A path, exact, or a prefix when it ends in `/*` (`/admin/*` matches `/admin` too). `{name}` captures one
        /// segment.
        path: Text,
        /// A regular expression that is searched for anywhere in the path, unless it has anchors. Named groups
        /// capture.
        path_regex: Text,
        /// A host name, exact or as `*.example.com`.
        host: Text,
        /// Header names and globs for their values: `*` stands for any text, `?` for one character.
        header: MapOf<Text>,
        /// Names of query parameters and globs for their values.
        query: MapOf<Text>,
        /// Names of cookies and globs for their values.
        cookie: MapOf<Text>,
        /// Names of lists, one of which the client must be on.
        client: OneOrList<Text>,
        /// Instead of all others: the route is for the descriptors that Envoy asks about under this domain
        /// (`RateLimitService`), and for no request.
        domain: Text,
    }
}

impl RawValue for Match {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.content {
            Content::Scalar(text) => Some(Self::Short(Text { value: text.clone(), at: node.at })),
            Content::Map(entries) if entries.is_empty() => {
                mistakes.report(node.at, "an empty `match`", "write `match: /*` for every request");
                None
            }
            Content::Map(_) => Some(Self::Long(Box::new(Conditions::read(node, mistakes)?))),
            Content::Nothing | Content::List(_) => {
                mistakes.report(
                    node.at,
                    format!("expected a match, found {}", node.kind()),
                    "write `POST /login`, or a map such as `{methods: [POST], path: /login}`",
                );
                None
            }
        }
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        let short = json!({ "type": "string", "examples": ["POST /login", "/admin/*"] });
        json!({ "anyOf": [short, Conditions::schema(definitions)] })
    }
}
