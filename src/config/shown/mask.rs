//! Masks secrets in a configuration: passwords in URLs, the paths of webhooks, and tokens that a route is matched by.

use crate::config::yaml::Content;
use crate::config::yaml::Node;
use crate::secret;
use crate::secret::MASK;

/// The same tree without secrets.
pub(super) fn mask(root: &Node) -> Node {
    masked(root, Place::Other)
}

/// What the values at a place are.
#[derive(Clone, Copy, Debug)]
enum Place {
    Webhook,
    /// In `match`.
    Match,
    /// The globs for each name, in `match`: of headers or query parameters.
    NamedGlobs,
    CookieGlobs,
    /// A glob that may be written as a whole secret.
    SecretGlob,
    Other,
}

fn masked(node: &Node, place: Place) -> Node {
    let content = match &node.content {
        Content::Nothing => Content::Nothing,
        Content::Scalar(text) => Content::Scalar(escape(&masked_text(text, place))),
        Content::List(items) => Content::List(items.iter().map(|item| masked(item, place)).collect()),
        Content::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), masked(value, place_of(place, &key.text))));
            Content::Map(entries.collect())
        }
    };
    Node { at: node.at, content }
}

fn place_of(outer: Place, key: &str) -> Place {
    match (outer, key) {
        (Place::Match, "header" | "query") => Place::NamedGlobs,
        (Place::Match, "cookie") => Place::CookieGlobs,
        (Place::CookieGlobs, _) => Place::SecretGlob,
        (Place::NamedGlobs, name) if names_a_secret(name) => Place::SecretGlob,
        (_, "match") => Place::Match,
        (_, "webhook") => Place::Webhook,
        _ => Place::Other,
    }
}

fn masked_text(text: &str, place: Place) -> String {
    let shown = secret::masked(text);
    let shown = match place {
        Place::Webhook => secret::without_paths(&shown),
        Place::SecretGlob if !text.chars().all(|letter| matches!(letter, '*' | '?')) => return MASK.to_owned(),
        _ => shown,
    };
    if shown == text { shown } else { secret::shortened(&shown) }
}

/// Whether a header or parameter of that name usually holds a secret.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

const SECRET_NAMES: [&str; 9] =
    ["auth", "token", "key", "secret", "cookie", "session", "pass", "signature", "credential"];

/// The environment's values are in place already: what still looks like a variable is literal.
fn escape(text: &str) -> String {
    text.replace("${", "$${")
}
