//! An entry of the `routes` section and its `match`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field::section;
use super::forms::{ListOf, MapOf, OneOrList};
use super::limit::Limit;
use super::then::DenyResponse;
use crate::config::diagnostic::Mistakes;
use crate::config::raw::forms::{RawValue, Spanned, Text};
use crate::config::raw::grammar;
use crate::config::raw::limit::KeyPart;
use crate::config::yaml::{Content, Node};
use crate::rules::limit::EntrySet;
use crate::rules::route::{Case, KnownBy, KnownClients as KnownClientRule, SessionRule};
use crate::words::units::Span;

/// The condition of a route, short or long.
#[derive(Clone, Debug)]
pub enum Match {
    /// `POST /login`
    Short(Text),
    Long(Box<Conditions>),
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
        let mut short = grammar::text("match", &grammar::short_match());
        short["examples"] = json!(["POST /login", "/admin/*"]);
        short["not"] = json!({ "pattern": grammar::location() });
        json!({ "anyOf": [short, Conditions::schema(definitions)] })
    }
}

// The `outcome` and `known_clients` of a route, as they are written.

section! {
    /// Rules for the requests that match. The first route that matches a request applies to it.
    Route {
        /// Its name in logs and metrics. Default: the text of its `match`.
        name: Text => NAME,
        /// Which requests: `POST /login` for short, or a map of conditions that must all hold.
        r#match: Match,
        /// Compare letters of the path with case.
        case_sensitive: Spanned<bool> = matches!(Case::default(), Case::Sensitive),
        /// Where these requests go: a URL, or a name from `upstreams`. Default: the default upstream.
        upstream: Text => UPSTREAM,
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
    later {
        "headers" => "remove it: the application, or a proxy beside it, can set the field",
    }
    rules {
        grammar::filled(&["only"]),
    }
}

section! {
    /// Descriptors that a domain denies.
    DeniedDescriptor {
        /// Entries of a descriptor and globs for their values, all of which it must have.
        descriptor: MapOf<Text>,
        /// Entries of a descriptor and one or several globs, none of which it may have.
        except: MapOf<OneOrList<Text>>,
        /// Whether it may have entries beside those of `descriptor`: `at_least` lets it have them, `exact`
        /// does not.
        entries: Spanned<EntrySet> = EntrySet::default(),
    }
    required {
        descriptor => "name the entries: `descriptor: {remote_address: 198.51.100.7}`",
    }
}

section! {
    /// Conditions that must all hold.
    Conditions {
        /// Methods, compared without case. HEAD matches where GET does.
        methods: OneOrList<Text> => METHOD,
        /// A path, exact, or a prefix when it ends in `/*` (`/admin/*` matches `/admin` too). `{name}` captures one
        /// segment.
        path: Text => PATH,
        /// A regular expression that is searched for anywhere in the path, unless it has anchors. Named groups
        /// capture.
        path_regex: Text,
        /// A host name, exact or as `*.example.com`.
        host: Text => HOST_PATTERN,
        /// Header names and globs for their values: `*` stands for any text, `?` for one character.
        header: MapOf<Text> => FIELD,
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
    rules {
        grammar::not_empty(),
        grammar::not_both("path", "path_regex"),
        grammar::filled(&["methods", "client"]),
    }
}

section! {
    /// Who is signed in. After a success the cookies and tokens of the answer are sessions of the account that the request
    /// named, and the selector `user` is that account on every route. A success that gives no such session, or whose
    /// request carried a session of another account, is a failure.
    Sessions {
        /// The selector of the user name, for instance `param.username`. A list for accounts of one host each:
        /// `[host, param.username]`.
        of: OneOrList<KeyPart>,
        /// Names of cookies that are sessions, or globs for them, such as `wordpress_logged_in_*`.
        cookies: OneOrList<Text>,
        /// Where tokens stand in the JSON body of a success: `json.access_token`. Requests carry them as `bearer`.
        tokens: OneOrList<Text>,
        /// How long a session is known after its last use: as long as the application accepts the longest of them.
        r#for: Spanned<Span> => KEPT = Span(SessionRule::KEEP),
        /// Whether a success gives the client a session that its request did not carry. Write `false` for an application
        /// that keeps the session's id over a login: then what the request carried is a session of the account, too.
        fresh: Spanned<bool> = SessionRule::FRESH,
        /// Names of webhooks in the `notify` section that get a message when somebody signs in to an account after failures.
        notify: OneOrList<Text>,
    }
    required {
        of => "write the selector of the user name: `of: param.username`",
    }
    short {
        on => "{of: param.username, cookies: [sessionid]}",
        anything => "{of: param.username, cookies: $}",
    }
    rules {
        grammar::one_of(&["cookies", "tokens"]),
    }
}

section! {
    /// What the application's answers mean. An answer that matches both `success` and `failure` is a failure.
    Outcome {
        /// What a success looks like.
        success: Matchers,
        /// What a failure looks like.
        failure: Matchers,
        /// The outcome of an answer that matches neither: `success`, `failure` or `neither`. Default: the opposite of
        /// the only one that is given, else `neither`.
        otherwise: Spanned<crate::rules::outcome::Outcome>,
    }
    later {
        "pad" => "remove it",
    }
}

section! {
    /// Conditions on an answer, all of which must hold.
    Matchers {
        /// Its status: `401`, `4xx`, `400-499`, or a list of them.
        status: OneOrList<Text>,
        /// Header names and globs for their values: `*` stands for any text, `?` for one character.
        header: MapOf<Text> => FIELD,
        /// A glob for the name of a cookie that the answer sets, compared with case: `wordpress_logged_in_*`. Of a
        /// list, the answer must set one cookie for each.
        cookie: OneOrList<Text>,
        /// What its body contains, within the first `server.inspect_body` bytes: a text, or a regular expression
        /// written as `/.../`.
        body: Text,
        /// Dotted paths in its JSON body and the values there: `{error.code: bad_password}`.
        json: JsonValues,
    }
    short {
        status => "{status: $}",
    }
    rules {
        grammar::not_empty(),
    }
}

/// Dotted paths and the values there, written as in JSON, texts without quotes.
#[derive(Clone, Debug)]
pub struct JsonValues(pub MapOf<Text>);

impl RawValue for JsonValues {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let mut node = node.clone();
        if let Content::Map(entries) = &mut node.content {
            // Here `null` is a value.
            let nothing = entries.iter_mut().map(|(_, value)| value).filter(|value| value.content == Content::Nothing);
            nothing.for_each(|value| value.content = Content::Scalar("null".to_owned()));
        }
        MapOf::read(&node, mistakes).map(Self)
    }

    fn schema(_: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } })
    }
}

section! {
    /// Clients that have logged in before. Limits with `unless: [known_client]` do not apply to them.
    KnownClients {
        /// The selector of the user name: a client is known for the name under which it logged in. For instance
        /// `param.username`, or a list such as `[host, param.username]` where one route is for several sites.
        of: OneOrList<KeyPart>,
        /// With `by: address`: how many clients are remembered for each name, the latest first.
        remember: Spanned<u64> => REMEMBERED = KnownClientRule::REMEMBER,
        /// How long a client stays known after its last success.
        r#for: Spanned<Span> => KEPT = Span(KnownClientRule::KEEP),
        /// How a known client is identified: by its `address`, or by a signed device `cookie`.
        by: Spanned<KnownBy> = KnownBy::default(),
        /// Names of webhooks in the `notify` section that get a message when a client that is not known signs in to an
        /// account after failures.
        notify: OneOrList<Text>,
    }
    required {
        of => "write the selector of the user name: `of: param.username`",
    }
    short {
        on => "{of: param.username}",
        anything => "{of: $}",
    }
}
