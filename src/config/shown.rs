//! The configuration as operators see it: the text that was read, with the values of environment variables and without
//! secrets.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::config::secrets::Place;
use crate::config::yaml::{Content, MapKey, Node};

// The two forms in which a configuration is shown.

/// A configuration without its secrets. Either text can be read as a configuration again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShownConfig {
    masked: Node,
}

impl ShownConfig {
    /// `root` is the whole document.
    pub(in crate::config) fn of(root: &Node) -> Self {
        Self { masked: mask(root) }
    }

    pub fn yaml(&self) -> String {
        write(&self.masked)
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&Json(&self.masked)).expect("the keys are text")
    }
}

// A reload brings all of a configuration into force but for a part of its store, which only a start changes.

const STORE: &str = "store";

impl ShownConfig {
    /// What is in force after a reload: this configuration, with what it changes of the store of the one `before` and waits for
    /// the next start, such as `store.redis.url`.
    #[must_use]
    pub fn with_store_of(mut self, before: &Self, waiting: &[&str]) -> Self {
        let is_kept = |key: &str| waiting.iter().any(|waiting| waiting.split('.').nth(1) == Some(key));
        let [old, new] = [before, &self].map(|config| config.store().map(entries).unwrap_or_default());
        // Most other keys are about Redis: those of a Redis that is to come are not in force.
        let is_to_come = is_kept("redis") && !old.iter().any(|(key, _)| key.text == "redis");
        let old = old.iter().filter(|(key, _)| is_to_come || is_kept(&key.text));
        let new = new.iter().filter(|(key, _)| !is_to_come && !is_kept(&key.text));
        let store: Vec<_> = old.chain(new).cloned().collect();
        let named = self.section(STORE).or_else(|| before.section(STORE)).cloned();
        if let (Some((key, Node { at, .. })), Content::Map(sections)) = (named, &mut self.masked.content) {
            let place = sections.iter().position(|(key, _)| key.text == STORE).unwrap_or(sections.len());
            let is_written = place < sections.len();
            let section = (!store.is_empty()).then_some((key, Node { at, content: Content::Map(store) }));
            sections.splice(place..place + usize::from(is_written), section);
        }
        self
    }

    fn store(&self) -> Option<&Node> {
        self.section(STORE).map(|(_, store)| store)
    }

    fn section(&self, name: &str) -> Option<&(MapKey, Node)> {
        entries(&self.masked).iter().find(|(key, _)| key.text == name)
    }
}

fn entries(node: &Node) -> &[(MapKey, Node)] {
    match &node.content {
        Content::Map(entries) => entries,
        Content::Nothing | Content::Scalar(_) | Content::List(_) => &[],
    }
}

/// In the order of the file.
struct Json<'n>(&'n Node);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.content {
            Content::Nothing => serializer.serialize_none(),
            Content::Scalar(text) => match text.as_str() {
                "true" => serializer.serialize_bool(true),
                "false" => serializer.serialize_bool(false),
                text => match (whole_number(text), decimal(text)) {
                    (Some(number), _) => serializer.serialize_u64(number),
                    (None, Some(number)) => number.serialize(serializer),
                    (None, None) => serializer.serialize_str(text),
                },
            },
            Content::List(items) => serializer.collect_seq(items.iter().map(Json)),
            Content::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&key.text, &Json(value))?;
                }
                map.end()
            }
        }
    }
}

/// Only where the number is written as the text was.
fn whole_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// A number with a fraction, in the digits of the text: `1.50` may be a text elsewhere, and must be read again as it was.
fn decimal(text: &str) -> Option<Box<RawValue>> {
    let (whole, fraction) = text.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_decimal = is_number(whole) && is_number(fraction);
    // JSON has no numbers such as `007.5`.
    is_decimal.then(|| RawValue::from_string(text.to_owned()).ok()).flatten()
}

// Masks secrets in a configuration: passwords in URLs, the paths of webhooks, and tokens that a route is matched by.

/// Copies the tree without secrets.
pub(super) fn mask(root: &Node) -> Node {
    masked(root, Place::Document)
}

fn masked(node: &Node, place: Place) -> Node {
    let content = match &node.content {
        Content::Nothing => Content::Nothing,
        Content::Scalar(text) => Content::Scalar(escape(&place.secret_part(text).hidden(text))),
        Content::List(items) => Content::List(items.iter().map(|item| masked(item, place)).collect()),
        Content::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), masked(value, place.below(&key.text))));
            Content::Map(entries.collect())
        }
    };
    Node { at: node.at, content }
}

/// The environment's values are in place already: what still looks like a variable is literal.
fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

// Writes a tree as YAML.

const INDENT: &str = "  ";

/// The text of a whole document.
pub(super) fn write(root: &Node) -> String {
    let mut text = String::new();
    match &root.content {
        Content::Map(entries) if !entries.is_empty() => map(entries, 0, &mut text),
        _ => {
            text.push_str(&flow(root));
            text.push('\n');
        }
    }
    text
}

fn map(entries: &[(MapKey, Node)], depth: usize, text: &mut String) {
    for (key, value) in entries {
        text.push_str(&INDENT.repeat(depth));
        entry(key, value, depth, text);
    }
}

/// A key and its value. The indentation is written already.
fn entry(key: &MapKey, value: &Node, depth: usize, text: &mut String) {
    text.push_str(&scalar(&key.text));
    text.push(':');
    match &value.content {
        Content::Map(inner) if !inner.is_empty() => {
            text.push('\n');
            map(inner, depth + 1, text);
        }
        Content::List(items) if !items.iter().all(is_scalar) => {
            text.push('\n');
            for item in items {
                list_item(item, depth + 1, text);
            }
        }
        _ => {
            text.push(' ');
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

fn list_item(item: &Node, depth: usize, text: &mut String) {
    text.push_str(&INDENT.repeat(depth));
    text.push_str("- ");
    match &item.content {
        // The first key stands behind the dash, the others below it.
        Content::Map(entries) if !entries.is_empty() => {
            let (key, value) = &entries[0];
            entry(key, value, depth + 1, text);
            map(&entries[1..], depth + 1, text);
        }
        _ => {
            text.push_str(&flow(item));
            text.push('\n');
        }
    }
}

fn is_scalar(node: &Node) -> bool {
    matches!(node.content, Content::Scalar(_) | Content::Nothing)
}

/// On one line.
fn flow(node: &Node) -> String {
    match &node.content {
        Content::Nothing => "null".to_owned(),
        Content::Scalar(text) => scalar(text),
        Content::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Content::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", scalar(&key.text), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Quoted where it would mean something else, as JSON quotes it.
fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { serde_json::to_string(text).expect("a text is JSON") }
}

fn is_plain(text: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '_');
    text.starts_with(is_word)
        && !text.ends_with([' ', ':'])
        && text.chars().all(|letter| is_word(letter) || matches!(letter, '.' | ':' | '@' | '+' | '-' | ';' | ' ' | '='))
        && !text.contains(": ")
        && !["null", "Null", "NULL"].contains(&text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::diagnostic::Mistakes;
    use crate::config::yaml;

    #[test]
    fn what_would_mean_something_else_is_quoted() {
        for plain in ["127.0.0.1:8080", "1/second; 20/minute", "client_ip", "/login", "POST /login", "64KiB"] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in ["", "~", "null", "- a", "*", "a: b", "a #b", "[::1]:80", "a,b", "a:", " a", "{x}", "é", "&a"] {
            assert!(scalar(quoted).starts_with('"'), "{quoted}");
        }
    }

    fn parse(text: &str) -> Node {
        let mut mistakes = Mistakes::default();
        let root = yaml::parse(text, 0, &|_| None, &mut mistakes);
        assert!(mistakes.is_empty(), "{text}\n{mistakes:?}");
        root.expect("a document")
    }

    /// The text of a tree, without its places.
    fn plain(node: &Node) -> String {
        serde_json::to_string(&Json(node)).unwrap()
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("config")).unwrap();
        let files = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "yaml"));
        let texts = files.map(|path| fs::read_to_string(path).unwrap()).chain([
            "a: \"x: y # z\"\nb: [\"-\", \"~\", \"\", \"a,b\", 007, 1.50, true, [], {}]\nc: {\"*\": {d: \"tab\\t\\n\"}}".to_owned(),
            "a:\n  - - nested\n    - [list]\n  - {map: [{deep: 'it''s'}]}\n\"quoted: key\": ' space '".to_owned(),
        ]);
        for text in texts {
            let root = parse(&text);
            let shown = ShownConfig::of(&root);
            assert_eq!(plain(&parse(&shown.yaml())), plain(&mask(&root)), "{}", shown.yaml());
            assert_eq!(plain(&parse(&shown.json())), plain(&mask(&root)), "{}", shown.json());
        }
    }

    #[test]
    fn numbers_are_numbers_in_json_with_the_digits_they_were_written_with() {
        let numbers = "a: [0, 20, 0.01, 0.50, 1.0, 007, 1.2.3, .5, 5., -1.5, 1e3, 00.5]";
        let expected = r#"{"a":[0,20,0.01,0.50,1.0,"007","1.2.3",".5","5.","-1.5","1e3","00.5"]}"#;
        assert_eq!(plain(&parse(numbers)), expected);
        assert_eq!(plain(&parse(&ShownConfig::of(&parse(numbers)).json())), expected);
    }

    #[test]
    fn after_a_reload_the_store_of_before_is_shown() {
        let check = |before: &str, read: &str, waiting: &[&str], expected: &str| {
            let [before, read] = [before, read].map(|text| ShownConfig::of(&parse(text)));
            assert_eq!(plain(&read.with_store_of(&before, waiting).masked), expected);
        };
        check(
            "store: {redis: {url: a}, nodes: 2, on_failure: deny}\nlisten: 1",
            "store: {leases: off, redis: {url: b}, memory: 5, on_failure: allow}\nlisten: 2",
            &["store.redis.url", "store.memory.max_keys", "store.nodes"],
            r#"{"store":{"redis":{"url":"a"},"nodes":2,"leases":"off","on_failure":"allow"},"listen":2}"#,
        );
        let (memory, redis) = ("store: {memory: 5}", "listen: 2\nstore: {redis: {url: b}, on_failure: allow}");
        check(memory, redis, &["store.redis", "store.memory.max_keys"], r#"{"listen":2,"store":{"memory":5}}"#);
        check("listen: 1", redis, &["store.redis"], r#"{"listen":2}"#);
        check(redis, "listen: 3", &["store.redis"], r#"{"listen":3,"store":{"redis":{"url":"b"}}}"#);
        check(
            memory,
            "store: {memory: 6}\nlisten: 4",
            &["store.memory.max_keys"],
            r#"{"store":{"memory":5},"listen":4}"#,
        );
        check("listen: 1", "listen: 2", &[], r#"{"listen":2}"#);
    }

    #[test]
    fn a_literal_that_looks_like_a_variable_stays_one() {
        let shown = ShownConfig::of(&parse("body: 'costs $${PRICE}'"));
        assert_eq!(plain(&parse(&shown.yaml())), r#"{"body":"costs ${PRICE}"}"#);
    }

    #[test]
    fn no_secret_is_shown() {
        let text = "\
store: {redis: {url: 'redis://user:hunter2@127.0.0.1:6379/0'}}
upstream: http://10.0.0.1:8000
notify: {ops: {webhook: 'https://hooks.example.com/T0/hunter2?x=hunter2'}}
routes:
  - match: {path: /a, header: {x-api-key: hunter2, accept: 'text/*'}, cookie: {session: hunter2}, query: {token: hunter2, step: '?'}}
";
        let shown = ShownConfig::of(&parse(text));
        let (yaml, json) = (shown.yaml(), shown.json());
        for shown in [&yaml, &json] {
            assert!(!shown.contains("hunter2"), "{shown}");
            for kept in ["127.0.0.1:6379/0", "10.0.0.1:8000", "https://hooks.example.com/", "text/*", "x-api-key", "/a"]
            {
                assert!(shown.contains(kept), "{kept}: {shown}");
            }
        }
        // The length of a secret is not shown either.
        assert!(yaml.contains("redis://***@127.0.0.1"), "{yaml}");
    }
}
