//! The macro that defines a section, and the keys of a section: which are known, which are missing, and the value of each.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::config::diagnostic::Mistakes;
use crate::config::load::advice_of_others;
use crate::config::raw::server::Level;
use crate::config::source::SourceRange;
use crate::config::yaml::{Content, MapKey, Node};
use crate::record::LogFormat;
use crate::rules::list::network;
use crate::rules::outcome::StatusSet;
use crate::words::units::{Span, listed, nearest};
use crate::words::word::Word;

/// The value of a key.
#[derive(Clone, Debug, Default)]
pub enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// The value has a mistake, which has been reported.
    Invalid,
    Given {
        key: SourceRange,
        value: T,
    },
}

impl<T> Field<T> {
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Given { value, .. } => Some(value),
            Self::Absent | Self::Invalid => None,
        }
    }

    /// The place of the key, if its value is valid.
    pub fn key(&self) -> Option<SourceRange> {
        match self {
            Self::Given { key, .. } => Some(*key),
            Self::Absent | Self::Invalid => None,
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T> Field<T> {
    pub fn read(
        entries: &Entries<'_>,
        key: &str,
        mistakes: &mut Mistakes,
        read: impl FnOnce(&Node, &mut Mistakes) -> Option<T>,
    ) -> Self {
        let Some((name, node)) = entries.known.iter().find(|(name, _)| name.text == key) else {
            // A misspelt key is not an absent one.
            return if entries.misspelt.contains(&key) { Self::Invalid } else { Self::Absent };
        };
        if node.content == Content::Nothing {
            mistakes.report(
                name.at,
                format!("`{key}` has no value"),
                "write one after the colon, or remove the key: what is left out has its default",
            );
            return Self::Invalid;
        }
        match read(node, mistakes) {
            Some(value) => Self::Given { key: name.at, value },
            None => Self::Invalid,
        }
    }
}

/// The keys of a section.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub known: &'static [&'static str],
    /// Each with an example.
    pub required: &'static [(&'static str, &'static str)],
    /// Keys of a later version, with what to do until then.
    pub later: &'static [(&'static str, &'static str)],
    /// The maps that values without a map stand for, `$` in the place of the value: the first whose test the value passes.
    pub short: &'static [ShortForm],
}

/// Whether a value is meant so, and the map that it stands for.
type ShortForm = (fn(&str) -> bool, &'static str);

impl Keys {
    /// The map that a value stands for which is none. `None`: it is not known which.
    pub fn map_of(&self, node: &Node) -> Option<String> {
        let first = match &node.content {
            Content::List(items) => items.first()?,
            _ => node,
        };
        let Content::Scalar(text) = &first.content else { return None };
        let (_, map) = self.short.iter().find(|(is_meant, _)| is_meant(text))?;
        Some(map.replacen('$', &in_one_line(node)?, 1))
    }
}

/// The entries of a section's map.
#[derive(Clone, Debug)]
pub struct Entries<'n> {
    known: &'n [(MapKey, Node)],
    /// The known keys that unknown ones probably meant.
    misspelt: Vec<&'static str>,
}

/// The entries of a section's map. Reports unknown and missing keys.
pub fn entries<'n>(node: &'n Node, keys: &Keys, mistakes: &mut Mistakes) -> Option<Entries<'n>> {
    let Content::Map(entries) = &node.content else {
        mistakes.report(
            node.at,
            format!("expected a map, found {}", node.kind()),
            keys.map_of(node).map_or_else(
                || format!("its keys are {}", listed(keys.known)),
                |map| format!("its values stand under their keys: write `{map}`"),
            ),
        );
        return None;
    };
    let misspelt: Vec<_> = entries.iter().filter_map(|(name, _)| refuse_unknown(name, keys, mistakes)).collect();
    let unknown = entries.iter().filter(|(name, _)| !keys.known.contains(&name.text.as_str())).count();
    if unknown > misspelt.len() {
        mistakes.note_unsure(node.at);
    }
    for (key, example) in keys.required {
        if !misspelt.contains(key) && !entries.iter().any(|(name, _)| name.text == *key) {
            mistakes.report(node.at, format!("`{key}` is missing"), *example);
        }
    }
    Some(Entries { known: entries, misspelt })
}

/// The mistake of a key or a word of a later version.
pub fn not_implemented(word: &str) -> String {
    format!("`{word}` is not implemented in this version yet")
}

/// Reports an unknown key. Returns the key that was probably meant.
fn refuse_unknown(name: &MapKey, keys: &Keys, mistakes: &mut Mistakes) -> Option<&'static str> {
    let key = name.text.as_str();
    if keys.known.contains(&key) {
        return None;
    }
    let later = keys.later.iter().find(|(late, _)| *late == key).map(|(_, help)| *help);
    if let Some(help) =
        later.or_else(|| key.starts_with("x-").then_some("remove it: an anchor may stand where it is used first"))
    {
        mistakes.report(name.at, not_implemented(key), help);
        return None;
    }
    let meant = WORDS_OF_OTHERS.iter().filter(|(word, _)| *word == key).map(|(_, ours)| *ours);
    let near = meant.into_iter().find(|ours| keys.known.contains(ours)).or_else(|| nearest(key, keys.known));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => advice_of_others(key, keys.known)
            .map_or_else(|| format!("the keys here are {}", listed(keys.known)), str::to_owned),
    };
    mistakes.report(name.at, format!("unknown key `{key}`"), help);
    near
}

/// A value in one line, as YAML and JSON both read it. `None`: it has no value somewhere, or is too long to be read.
pub fn in_one_line(node: &Node) -> Option<String> {
    /// The width of a terminal.
    const LONGEST: usize = 120;
    let line = match &node.content {
        Content::Nothing => return None,
        Content::Scalar(text) => quoted(text),
        Content::List(items) => {
            format!("[{}]", items.iter().map(in_one_line).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Content::Map(entries) => {
            let entries =
                entries.iter().map(|(key, value)| Some(format!("{}: {}", quoted(&key.text), in_one_line(value)?)));
            format!("{{{}}}", entries.collect::<Option<Vec<_>>>()?.join(", "))
        }
    };
    (line.len() <= LONGEST).then_some(line)
}

/// A text in quotes where YAML needs them, within brackets too.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./".contains(letter);
    let begins = text.starts_with(|first: char| first.is_alphanumeric() || first == '/' || first == '.');
    let colons = text.split_whitespace().count() == 1 && !text.ends_with(':');
    let is_bare = begins
        && text
            .chars()
            .all(|letter| is_plain(letter) || colons && letter == ':' || ";".contains(letter) || letter == ' ');
    if is_bare && !text.ends_with(' ') { text.to_owned() } else { json!(text).to_string() }
}

// What values without a map may be.

pub fn anything(_: &str) -> bool {
    true
}

/// How others write that there is none.
pub fn off(text: &str) -> bool {
    matches!(text, "off" | "none" | "no" | "false" | "False" | "FALSE")
}

pub fn on(text: &str) -> bool {
    matches!(text, "on" | "auto" | "yes" | "true" | "True" | "TRUE")
}

pub fn number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

pub fn url(text: &str) -> bool {
    text.contains("://")
}

pub fn path(text: &str) -> bool {
    text.starts_with('/')
}

pub fn memory(text: &str) -> bool {
    text == "memory" || off(text)
}

pub fn span(text: &str) -> bool {
    text.parse::<Span>().is_ok()
}

pub fn level(text: &str) -> bool {
    Level::of_word(text).is_some()
}

pub fn format(text: &str) -> bool {
    LogFormat::of_word(text).is_some()
}

pub fn status(text: &str) -> bool {
    text.parse::<StatusSet>().is_ok()
}

pub fn addresses(text: &str) -> bool {
    network(text).is_ok()
}

/// What nginx and others call a key of ours that takes the same.
const WORDS_OF_OTHERS: [(&str, &str); 34] = [
    ("proxy_pass", "upstream"),
    ("backend", "upstream"),
    ("server_name", "host"),
    ("uri", "path"),
    ("client_max_body_size", "max_body"),
    ("large_client_header_buffers", "max_header_bytes"),
    ("set_real_ip_from", "trusted_proxies"),
    ("real_ip_header", "header"),
    ("ssl", "tls"),
    ("ssl_certificate", "cert"),
    ("ssl_certificate_key", "key"),
    ("location", "match"),
    ("rule", "match"),
    ("path", "match"),
    ("bind", "listen"),
    ("conn", "concurrent"),
    ("lb_policy", "balance"),
    ("load_balancing", "balance"),
    ("healthcheck", "health"),
    ("healthCheck", "health"),
    ("interval", "every"),
    ("rise", "healthy"),
    ("fall", "unhealthy"),
    ("keepalive", "max_idle"),
    ("whitelist", "allow"),
    ("allowlist", "allow"),
    ("blacklist", "deny"),
    ("denylist", "deny"),
    ("path_prefix", "path"),
    ("path_beg", "path"),
    ("prefix", "path"),
    ("ips", "addresses"),
    ("cidrs", "addresses"),
    ("client", "body_idle"),
];

/// A key as it is written in the file: `match` for `r#match`.
pub const fn key_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Adds the schema of a section to the definitions, and returns the reference to it.
pub fn define(
    name: &'static str,
    about: &str,
    keys: &Keys,
    definitions: &mut BTreeMap<&'static str, Value>,
    rules: &[Value],
    properties: impl FnOnce(&mut BTreeMap<&'static str, Value>) -> Vec<(&'static str, String, Value)>,
) -> Value {
    if !definitions.contains_key(name) {
        // A placeholder while the properties are described, so that a section may contain itself.
        definitions.insert(name, Value::Null);
        let mut described = Map::new();
        for (key, doc, mut schema) in properties(definitions) {
            schema["description"] = json!(unwrapped(&doc));
            described.insert(key.to_owned(), schema);
        }
        let mut schema = json!({
            "type": "object",
            "description": unwrapped(about),
            "additionalProperties": false,
            "properties": described,
        });
        if !keys.required.is_empty() {
            schema["required"] = keys.required.iter().map(|(key, _)| *key).collect();
        }
        if !rules.is_empty() {
            schema["allOf"] = json!(rules);
        }
        definitions.insert(name, schema);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A description that says which value is the default.
pub fn with_default(doc: &str, default: &str) -> String {
    let named = format!("`{default}`");
    let Some((before, after)) = doc.split_once(&named) else { return format!("{doc} Default: {default}.") };
    match after.strip_prefix(" (") {
        Some(more) => format!("{before}{named} (default: {more}"),
        None => format!("{before}{named} (default){after}"),
    }
}

/// The text of a doc comment as one paragraph.
fn unwrapped(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

// The macro that defines a section.

/// Defines a section: a struct whose fields are all [`Field`]s, how it is read, and its schema.
///
/// `required` keys are reported when they are missing. Keys after `later` are reported as not implemented, each with its
/// help. A value that is no map is told to be written as one of the maps after `short`. `rules` are schemas of what only
/// several keys together tell. A key with `=> BOUNDS` shows these [`bounds`](crate::config::raw::grammar) in its schema. A key
/// with `= VALUE` has this default: its description marks it where it names it, and ends with it otherwise.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $kind:ty $(=> $bounds:ident)? $(= $default:expr)?, )+
        }
        $( required { $( $required:ident => $example:literal, )+ } )?
        $( later { $( $late:literal => $help:literal, )+ } )?
        $( short { $( $test:ident => $map:literal, )+ } )?
        $( rules { $( $rule:expr, )+ } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub struct $name {
            pub at: $crate::config::source::SourceRange,
            $( $(#[doc = $doc])+ pub $key: $crate::config::raw::field::Field<$kind>, )+
        }

        impl $name {
            const KEYS: $crate::config::raw::field::Keys = $crate::config::raw::field::Keys {
                known: &[ $( $crate::config::raw::field::key_name(stringify!($key)), )+ ],
                required: &[ $( $( ($crate::config::raw::field::key_name(stringify!($required)), $example), )+ )? ],
                later: &[ $( $( ($late, $help), )+ )? ],
                short: &[ $( $( ($crate::config::raw::field::$test, $map), )+ )? ],
            };
        }

        impl $crate::config::raw::forms::RawValue for $name {
            fn read(
                node: &$crate::config::yaml::Node,
                mistakes: &mut $crate::config::diagnostic::Mistakes,
            ) -> Option<Self> {
                let entries = $crate::config::raw::field::entries(node, &Self::KEYS, mistakes)?;
                Some(Self {
                    at: node.at,
                    $( $key: $crate::config::raw::field::Field::read(
                        &entries, $crate::config::raw::field::key_name(stringify!($key)), mistakes,
                        $crate::config::raw::field::reader_of!($kind $(, $bounds)?),
                    ), )+
                })
            }

            fn keys() -> Option<&'static $crate::config::raw::field::Keys> {
                Some(&Self::KEYS)
            }

            fn schema(
                definitions: &mut std::collections::BTreeMap<&'static str, serde_json::Value>,
            ) -> serde_json::Value {
                $crate::config::raw::field::define(
                    stringify!($name),
                    concat!($($about, "\n"),+),
                    &Self::KEYS,
                    definitions,
                    &[ $( $( $rule, )+ )? ],
                    |definitions| vec![ $( (
                        $crate::config::raw::field::key_name(stringify!($key)),
                        $crate::config::raw::field::description_of!(concat!($($doc, "\n"),+) $(, $default)?),
                        $crate::config::raw::field::schema_of!(definitions, $kind $(, $bounds)?),
                    ), )+ ],
                )
            }
        }
    };
}

/// The description of a key, with its default where it has a value for one.
macro_rules! description_of {
    ($doc:expr) => {
        $doc.to_owned()
    };
    ($doc:expr, $default:expr) => {
        $crate::config::raw::field::with_default($doc, &$default.to_string())
    };
}

/// What reads a key's value.
macro_rules! reader_of {
    ($kind:ty) => {
        <$kind as $crate::config::raw::forms::RawValue>::read
    };
    ($kind:ty, $bounds:ident) => {
        |node: &$crate::config::yaml::Node, mistakes: &mut $crate::config::diagnostic::Mistakes| {
            <$kind as $crate::config::raw::forms::BoundedValue<_>>::read_within(
                node,
                $crate::config::raw::grammar::$bounds,
                mistakes,
            )
        }
    };
}

/// The schema of a key's value, within bounds where it has some.
macro_rules! schema_of {
    ($definitions:ident, $kind:ty) => {
        <$kind as $crate::config::raw::forms::RawValue>::schema($definitions)
    };
    ($definitions:ident, $kind:ty, $bounds:ident) => {
        <$kind as $crate::config::raw::forms::BoundedValue<_>>::schema_within(
            $definitions,
            $crate::config::raw::grammar::$bounds,
        )
    };
}

pub(super) use description_of;
pub(super) use reader_of;
pub(super) use schema_of;
pub(super) use section;
