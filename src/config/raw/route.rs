//! An entry of the `routes` section, and what it matches.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::Raw;
use super::Spanned;
use super::Text;
use super::forms::Many;
use super::forms::Named;
use super::forms::OneOrMany;
use super::limit::Limit;
use super::outcome::KnownClients;
use super::outcome::Outcome;
use super::section;
use super::then::DenyResponse;
use crate::config::diagnostic::Mistakes;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

section! {
    /// What holds for the requests that match. The first match wins.
    Route {
        /// Its name in logs and metrics. Left out: the text of its `match`.
        name: Text,
        /// Which requests: `POST /login` for short, or a map of conditions that must all hold.
        r#match: Match,
        /// Whether letters of the path are compared with case. Default: false.
        case_sensitive: Spanned<bool>,
        /// Where they go: a URL, or a name from `upstreams`. Left out: the default upstream.
        upstream: Text,
        /// Lists; anyone who is on none of them gets 403.
        only: OneOrMany<Text>,
        /// What the application's answers mean, for limits that count failures or successes.
        outcome: Outcome,
        /// Clients that a success makes known.
        known_clients: KnownClients,
        /// Limits that hold for these requests.
        limits: Many<Limit>,
        /// How a denial looks on this route.
        deny_response: DenyResponse,
    }
    required {
        r#match => "say which requests it is for: `match: POST /login`, or `match: /*` for all",
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
        /// Methods, without case. HEAD matches where GET does.
        methods: OneOrMany<Text>,
        /// Exact, or a prefix when it ends in `/*` (`/admin/*` holds `/admin` too); `{name}` captures one segment.
        path: Text,
        /// A regular expression, searched for anywhere in the path unless it has anchors; named groups capture.
        path_regex: Text,
        /// Exact, or `*.example.com`.
        host: Text,
        /// Header name to glob: `*` stands for any text, `?` for one character.
        header: Named<Text>,
        /// Query parameter to glob.
        query: Named<Text>,
        /// Cookie name to glob.
        cookie: Named<Text>,
        /// Lists, one of which must hold the client.
        client: OneOrMany<Text>,
    }
}

impl Raw for Match {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.content {
            Content::Scalar(text) => Some(Self::Short(Text { value: text.clone(), at: node.at })),
            Content::Map(entries) if entries.is_empty() => {
                mistakes.report(node.at, "an empty `match`", "`match: /*` is every request");
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
