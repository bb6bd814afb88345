//! Lists, and maps whose keys are names that the operator chooses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field::{Keys, in_one_line};
use super::grammar;
use crate::config::diagnostic::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::{Content, MapKey, Node};
use crate::words::word::Help;

/// A list.
#[derive(Clone, Debug)]
pub struct ListOf<T> {
    pub at: SourceRange,
    pub items: Vec<T>,
    /// No entry was left out for a mistake.
    is_whole: bool,
}

impl<T> ListOf<T> {
    /// Whether nothing is written there. Entries with mistakes are something.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.is_whole
    }
}

impl<T: RawValue> RawValue for ListOf<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let Content::List(nodes) = &node.content else {
            mistakes.report(
                node.at,
                format!("expected a list, found {}", node.kind()),
                list_of::<T>(node).map_or_else(
                    || "put `- ` before each entry, or the entries into `[` and `]`".to_owned(),
                    |list| format!("each entry stands in a list: write `{list}`"),
                ),
            );
            return None;
        };
        let items = read_all(nodes, mistakes, T::read);
        let is_whole = items.len() == nodes.len();
        Some(Self { at: node.at, items, is_whole })
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "array", "items": T::schema(definitions) })
    }
}

/// The list that a map stands for in its place: of one entry, or of entries under their names. `None`: it is not known which.
fn list_of<T: RawValue>(node: &Node) -> Option<String> {
    let (keys, Content::Map(entries)) = (T::keys()?, &node.content) else { return None };
    if entries.iter().any(|(key, _)| keys.known.contains(&key.text.as_str())) {
        return Some(format!("[{}]", in_one_line(node)?));
    }
    let items = entries.iter().map(|(name, value)| {
        let Content::Map(inner) = &value.content else { return None };
        let own = if name.text.contains('/') && keys.known.contains(&"match") { "match" } else { "name" };
        let own = (
            MapKey { at: name.at, text: own.to_owned() },
            Node { at: name.at, content: Content::Scalar(name.text.clone()) },
        );
        let is_known = |key: &str| keys.known.contains(&key);
        let all = inner.iter().all(|(key, _)| is_known(&key.text)) && is_known(&own.0.text);
        let entries = [vec![own], inner.clone()].concat();
        all.then(|| in_one_line(&Node { at: value.at, content: Content::Map(entries) }))?
    });
    Some(format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(", ")))
}

/// A list, or a single entry without brackets.
#[derive(Clone, Debug)]
pub struct OneOrList<T> {
    pub at: SourceRange,
    pub items: Vec<T>,
    /// No entry was left out for a mistake.
    is_whole: bool,
}

impl<T: RawValue> RawValue for OneOrList<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        Self::read_by(node, mistakes, T::read)
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        let one = T::schema(definitions);
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

impl<B: Copy, T: BoundedValue<B>> BoundedValue<B> for OneOrList<T> {
    fn read_within(node: &Node, bounds: B, mistakes: &mut Mistakes) -> Option<Self> {
        Self::read_by(node, mistakes, |node, mistakes| T::read_within(node, bounds, mistakes))
    }

    fn schema_within(definitions: &mut BTreeMap<&'static str, Value>, bounds: B) -> Value {
        let one = T::schema_within(definitions, bounds);
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

impl<T> OneOrList<T> {
    fn read_by(node: &Node, mistakes: &mut Mistakes, read: impl Fn(&Node, &mut Mistakes) -> Option<T>) -> Option<Self> {
        let (items, is_whole) = match &node.content {
            Content::List(nodes) => {
                let items = read_all(nodes, mistakes, read);
                let is_whole = items.len() == nodes.len();
                (items, is_whole)
            }
            _ => (vec![read(node, mistakes)?], true),
        };
        Some(Self { at: node.at, items, is_whole })
    }

    /// Whether nothing is written there. Entries with mistakes are something.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.is_whole
    }
}

/// The valid entries. The others have been reported.
fn read_all<T>(nodes: &[Node], mistakes: &mut Mistakes, read: impl Fn(&Node, &mut Mistakes) -> Option<T>) -> Vec<T> {
    nodes.iter().filter_map(|node| present(node, mistakes).and_then(|node| read(node, mistakes))).collect()
}

fn present<'n>(node: &'n Node, mistakes: &mut Mistakes) -> Option<&'n Node> {
    if node.content == Content::Nothing {
        mistakes.report(node.at, "this entry is empty", "write a value after the dash, or remove the line");
        return None;
    }
    Some(node)
}

/// A map from names to one kind of value, in the order of the file.
#[derive(Clone, Debug)]
pub struct MapOf<T> {
    pub at: SourceRange,
    pub entries: Vec<(Text, T)>,
    /// No entry was left out for a mistake.
    pub is_whole: bool,
}

/// The form is that of the names.
impl BoundedValue<Form> for MapOf<Text> {
    fn schema_within(definitions: &mut BTreeMap<&'static str, Value>, form: Form) -> Value {
        let mut schema = Self::schema(definitions);
        schema["propertyNames"] = json!({ "pattern": format!("^(?:{})$", (form.pattern)()) });
        schema
    }
}

impl<T: RawValue> RawValue for MapOf<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let Content::Map(entries) = &node.content else {
            mistakes.report(
                node.at,
                format!("expected a map, found {}", node.kind()),
                T::keys().and_then(|keys| keys.map_of(node)).map_or_else(
                    || "write a name, a colon, and its value".to_owned(),
                    |map| format!("each stands under a name that you choose: write `{{first: {map}}}`"),
                ),
            );
            return None;
        };
        let mut read = Vec::with_capacity(entries.len());
        for (name, node) in entries {
            if node.content == Content::Nothing {
                mistakes.report(name.at, format!("`{}` has no value", name.text), "write one after the colon");
                continue;
            }
            if let Some(value) = T::read(node, mistakes) {
                read.push((Text { value: name.text.clone(), at: name.at }, value));
            }
        }
        let is_whole = read.len() == entries.len();
        Some(Self { at: node.at, entries: read, is_whole })
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(definitions) })
    }
}

// What every value of the configuration has: a reader, a schema, and its place.

/// A value that can be in the configuration.
pub trait RawValue: Sized {
    /// Reads it; `None`: it was not what was expected, which has been reported.
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self>;

    /// The keys of a section.
    fn keys() -> Option<&'static Keys> {
        None
    }

    /// Its JSON Schema. Sections are added to `definitions` under their names.
    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value;
}

/// A value that has bounds: a least and a most, or the form of its text.
pub trait BoundedValue<B>: RawValue {
    /// Reads it. The bounds say what stands there; whether the value is within them is found out later.
    fn read_within(node: &Node, _: B, mistakes: &mut Mistakes) -> Option<Self> {
        Self::read(node, mistakes)
    }

    /// Its JSON Schema within bounds.
    fn schema_within(definitions: &mut BTreeMap<&'static str, Value>, bounds: B) -> Value;
}

/// A value with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub at: SourceRange,
}

/// A text that is not parsed yet.
pub type Text = Spanned<String>;

// The forms of texts.

/// The form of a text that is parsed when the configuration is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// What it is, in a word.
    pub title: &'static str,
    /// The same, as in "expected ..., found a list".
    pub what: &'static str,
    /// The help for a list or a map in its place.
    pub instead: &'static str,
    pub pattern: fn() -> String,
    /// What readers of YAML make of it where it is written without quotes.
    pub kinds: &'static [&'static str],
    pub examples: &'static [&'static str],
}

const TEXT: &[&str] = &["string"];

/// `2024` and `true` are words too.
const WORD: &[&str] = &["string", "number", "boolean"];

const WHOLE_WORD: &[&str] = &["string", "integer", "boolean"];

pub const UPSTREAM: Form = Form {
    title: "URL, or name of an upstream",
    what: "a URL, or the name of an upstream",
    instead: "several servers are an upstream with a name: write `upstreams: {app: {servers: [http://127.0.0.1:8000]}}`",
    kinds: WORD,
    pattern: grammar::upstream,
    examples: &["http://127.0.0.1:8000", "app"],
};

pub const NAME: Form = Form {
    title: "name",
    what: "a name",
    instead: "write one name, such as `login`",
    kinds: WORD,
    pattern: grammar::name,
    examples: &["login"],
};

pub const KEY_PREFIX: Form = Form {
    title: "prefix of keys",
    what: "a prefix of keys",
    instead: "write one such as `portcullis`",
    kinds: WORD,
    pattern: grammar::key_prefix,
    examples: &["portcullis"],
};

pub const TOKEN_PLACE: Form = Form {
    title: "place of a token",
    what: "the place of a token",
    instead: "write `bearer`, or where else the application looks for it, such as `cookie.access_token`",
    kinds: TEXT,
    pattern: grammar::token_place,
    examples: &["bearer", "cookie.access_token"],
};

pub const SERVER: Form = Form {
    title: "URL of a server",
    what: "the URL of a server",
    instead: "a server is its URL alone: write `http://127.0.0.1:8000`",
    kinds: TEXT,
    pattern: grammar::server_url,
    examples: &["http://10.0.1.5:8000", "http://unix:/run/app.sock"],
};

pub const REDIS: Form = Form {
    title: "URL of a Redis",
    what: "the URL of a Redis",
    instead: "write one such as `redis://127.0.0.1:6379/0`",
    kinds: TEXT,
    pattern: grammar::redis_url,
    examples: &["redis://127.0.0.1:6379/0"],
};

pub const HTTP_URL: Form = Form {
    title: "URL",
    what: "a URL",
    instead: "write the URL alone, such as `http://127.0.0.1:8080`",
    kinds: TEXT,
    pattern: grammar::http_url,
    examples: &["https://example.com/"],
};

pub const FIELD: Form = Form {
    title: "name of a header",
    what: "the name of a header",
    instead: "write one, such as `x-forwarded-for`",
    kinds: WORD,
    pattern: grammar::field_name,
    examples: &["x-forwarded-for"],
};

pub const METHOD: Form = Form {
    title: "method",
    what: "a method",
    instead: "write one such as `POST`",
    kinds: WHOLE_WORD,
    pattern: grammar::method,
    examples: &["GET", "POST"],
};

pub const PATH: Form = Form {
    title: "path",
    what: "a path",
    instead: "a route has one path: write `/login`, or a route for each",
    kinds: TEXT,
    pattern: grammar::path,
    examples: &["/login", "/admin/*", "/users/{id}"],
};

pub const HOST_PATTERN: Form = Form {
    title: "host",
    what: "a host",
    instead: "a route has one host: write `example.com`, or a route for each",
    kinds: WORD,
    pattern: grammar::host_pattern,
    examples: &["example.com", "*.example.com"],
};

// Why a text is not valid for its key, and what to write instead.

/// Why a text is not valid for its key, and what to write instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidValue {
    pub message: String,
    pub help: String,
}

impl InvalidValue {
    pub fn report(self, at: SourceRange, mistakes: &mut Mistakes) {
        mistakes.report(at, self.message, self.help);
    }

    /// The error for a text that looks like a glob where none is allowed.
    pub fn of_glob(text: &str, what: &str, help: impl Into<String>) -> Self {
        Self::with(format!("`{text}` looks like a glob, and {what} is taken literally"), help)
    }

    pub fn with(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

impl<E: Help> From<E> for InvalidValue {
    fn from(error: E) -> Self {
        Self::with(error.to_string(), error.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::limit::Rates;

    #[track_caller]
    fn check(text: &str, message: &str, help: &str) {
        let problem = text.parse::<Rates>().map_err(InvalidValue::from).unwrap_err();
        assert_eq!((problem.message.as_str(), problem.help.as_str()), (message, help));
    }

    #[test]
    fn the_message_and_the_help_are_those_of_the_error() {
        check("10", "`10` is not a rate", "write a count and a window such as `10/minute` or `10 per 3 minutes`");
        check(
            "1/s, 2/s",
            "two rates for the same window, `1/second` and `2/second`",
            "write the smaller one, `1/second`",
        );
        check("1 per 101 years", "a window of 101 years is too long", "write at most `100 years`");
    }
}
