//! Reads a configuration into the tree of its domain.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use crate::config::diagnostic::Mistakes;
use crate::config::source::{SourceRange, SourceText};
use crate::config::yaml;
use crate::config::yaml::{Content, MapKey, Node};
use crate::convert::rules::{Branch, Domain, EntryValue, Quota, TreeLimit, refuse_repeated};
use crate::rules::limit::Rate;
use crate::words::units::{listed, nearest};

const BRANCH_KEYS: [&str; 10] = [
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "quota_mode",
    "metadata",
];

const LIMIT_KEYS: [&str; 5] = ["unit", "requests_per_unit", "unlimited", "name", "replaces"];

/// All keys of the service.
const ALL_KEYS: [&str; 16] = [
    "domain",
    "descriptors",
    "name",
    "key",
    "value",
    "rate_limit",
    "shadow_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "quota_mode",
    "metadata",
    "unit",
    "requests_per_unit",
    "unlimited",
    "replaces",
];

/// Settings of metrics alone.
const METRICS: [(&str, &str); 2] = [
    ("detailed_metric", "no metric has a label for each value that was seen"),
    ("value_to_metric", "no metric has a label for each value that was seen"),
];

/// In seconds, as the service counts them.
const UNITS: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3600),
    ("day", 86_400),
    ("week", 7 * 86_400),
    ("month", 30 * 86_400),
    ("year", 365 * 86_400),
];

/// The domain of a configuration. `None`: it has none, which has been reported.
pub(super) fn read(root: &Node, mistakes: &mut Mistakes) -> Option<Domain> {
    // The xDS form of a file has a name beside its domain.
    let map = Map::of(root, &["domain", "descriptors", "name"], mistakes)?;
    let name = map.text("domain", mistakes).filter(|name| !name.is_empty());
    let Some(name) = name else {
        map.report_missing(
            "domain",
            root.at,
            "the file has no `domain`",
            "write the domain that Envoy asks with: `domain: edge`",
            mistakes,
        );
        return None;
    };
    if name.contains(['*', '?']) {
        let at = map.get("domain").map_or(root.at, |node| node.at);
        mistakes.report(at, format!("`{name}` cannot be the name of a domain here"), "rename it, here and in Envoy");
    }
    let branches = map.branches(mistakes);
    Some(Domain { name, at: root.at, branches })
}

/// The entries of a map whose keys are known.
struct Map<'n> {
    entries: &'n [(MapKey, Node)],
    /// The known keys that are misspelt in it.
    misspelt: Vec<&'static str>,
}

impl<'n> Map<'n> {
    /// Reports values that are no map, and unknown keys. The service ignores its own keys in a wrong place.
    fn of(node: &'n Node, known: &[&'static str], mistakes: &mut Mistakes) -> Option<Self> {
        let Content::Map(entries) = &node.content else {
            let message = format!("expected a map, found {}", node.kind());
            mistakes.report(node.at, message, format!("its keys are {}", listed(known)));
            return None;
        };
        let mut misspelt = Vec::new();
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&&*key.text)) {
            if let Some(place) = place_of(&key.text) {
                let message = format!("`{}` is left out: the service ignores it here", key.text);
                mistakes.warn(key.at, message, format!("write it {place}, if it shall hold there"));
                continue;
            }
            let help = match nearest(&key.text, known) {
                Some(near) => {
                    misspelt.push(near);
                    format!("did you mean `{near}`?")
                }
                None => match nearest(&key.text, &ALL_KEYS).and_then(|near| Some((near, place_of(near)?))) {
                    Some((near, place)) => format!("did you mean `{near}`? It stands {place}"),
                    None => format!("the keys here are {}", listed(known)),
                },
            };
            mistakes.report(key.at, format!("unknown key `{}`", key.text), help);
        }
        Some(Self { entries, misspelt })
    }

    /// Reports that a key is missing, unless it is there under a misspelt name, which has been reported.
    fn report_missing(&self, key: &str, at: SourceRange, message: &str, help: &str, mistakes: &mut Mistakes) {
        if !self.misspelt.contains(&key) {
            mistakes.report(at, message, help);
        }
    }

    fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }

    fn text(&self, key: &str, mistakes: &mut Mistakes) -> Option<String> {
        let node = self.get(key)?;
        match &node.content {
            Content::Scalar(text) => Some(text.clone()),
            Content::Nothing => None,
            Content::List(_) | Content::Map(_) => {
                let message = format!("`{key}` is {}, and not one value", node.kind());
                mistakes.report(node.at, message, format!("write it as `{key}: VALUE`"));
                None
            }
        }
    }

    fn flag(&self, key: &str, mistakes: &mut Mistakes) -> bool {
        let Some(text) = self.text(key, mistakes) else { return false };
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => true,
            "false" | "no" | "off" => false,
            _ => {
                let at = self.get(key).map_or_else(SourceRange::default, |node| node.at);
                mistakes.report(at, format!("`{text}` is neither true nor false"), "write `true` or `false`");
                false
            }
        }
    }

    fn list(&self, key: &str, mistakes: &mut Mistakes) -> &'n [Node] {
        let Some(node) = self.get(key) else { return &[] };
        match &node.content {
            Content::List(items) => items,
            Content::Nothing => &[],
            Content::Scalar(_) | Content::Map(_) => {
                let message = format!("`{key}` is {}, and not a list", node.kind());
                mistakes.report(node.at, message, "put `- ` before each entry");
                &[]
            }
        }
    }

    fn branches(&self, mistakes: &mut Mistakes) -> Vec<Branch> {
        let nodes = self.list("descriptors", mistakes);
        let branches: Vec<_> = nodes.iter().filter_map(|node| branch(node, mistakes)).collect();
        refuse_repeated(&branches, mistakes);
        branches
    }
}

fn branch(node: &Node, mistakes: &mut Mistakes) -> Option<Branch> {
    let map = Map::of(node, &BRANCH_KEYS, mistakes)?;
    let key = map.text("key", mistakes).unwrap_or_default();
    if key.is_empty() {
        let help = "name the entry that Envoy sends: `key: remote_address`";
        map.report_missing("key", node.at, "a descriptor without a `key`", help, mistakes);
    }
    let value = match map.text("value", mistakes).unwrap_or_default() {
        any if any.is_empty() => EntryValue::Any,
        value => match value.strip_suffix('*') {
            Some(beginning) => EntryValue::Beginning(beginning.to_owned()),
            None => EntryValue::Exactly(value),
        },
    };
    for (name, meaning) in METRICS {
        if let Some(at) = map.get(name).map(|node| node.at).filter(|_| map.flag(name, mistakes)) {
            let help = "metrics have the name of the limit, and `portcullis top` and `limits` show its keys";
            mistakes.warn(at, format!("`{name}` is left out: {meaning}"), help);
        }
    }
    if let Some(at) = map.get("quota_mode").map(|node| node.at).filter(|_| map.flag("quota_mode", mistakes)) {
        let help = "add `shadow: true` where it shall only be reported";
        mistakes.warn(at, "`quota_mode` is left out: beyond this limit calls are denied", help);
    }
    if let Some(node) = map.get("metadata").filter(|node| node.content != Content::Nothing) {
        let help = "nothing here or in Envoy depends on it, unless a filter of yours reads it";
        mistakes.warn(node.at, "`metadata` is left out: no answer carries metadata of a limit", help);
    }
    let shares = map.flag("share_threshold", mistakes);
    // The service looks at the end of both together.
    let is_wildcard = match value {
        EntryValue::Beginning(_) => true,
        EntryValue::Any => key.ends_with('*'),
        EntryValue::Exactly(_) => false,
    };
    if let Some(at) = map.get("share_threshold").map(|node| node.at)
        && shares
        && !is_wildcard
        && !map.misspelt.contains(&"value")
    {
        let help = "remove it, or end the value in `*`: elsewhere in a value a `*` is only itself";
        mistakes.report(at, "`share_threshold` needs a value that ends in `*`", help);
    }
    Some(Branch {
        at: node.at,
        key,
        value,
        limit: map.get("rate_limit").and_then(|node| limit(node, mistakes)),
        shadow: map.flag("shadow_mode", mistakes),
        shares,
        branches: map.branches(mistakes),
    })
}

fn limit(node: &Node, mistakes: &mut Mistakes) -> Option<TreeLimit> {
    if node.content == Content::Nothing {
        return None;
    }
    let map = Map::of(node, &LIMIT_KEYS, mistakes)?;
    let name = map.text("name", mistakes).filter(|name| !name.is_empty());
    let mut replaces = Vec::new();
    for node in map.list("replaces", mistakes) {
        let Some(entry) = Map::of(node, &["name"], mistakes) else { continue };
        match entry.text("name", mistakes).filter(|name| !name.is_empty()) {
            None => mistakes.report(node.at, "an entry of `replaces` without a name", "write `- name: NAME`"),
            Some(own) if Some(&own) == name.as_ref() => {
                mistakes.report(node.at, "a limit cannot replace itself", "name another limit, or remove the entry");
            }
            Some(other) => replaces.push(other),
        }
    }
    let unit = map.text("unit", mistakes);
    if map.flag("unlimited", mistakes) {
        if let Some(unit) = map.get("unit") {
            mistakes.report(unit.at, "`unlimited` has no unit", "remove one of the two");
        }
        return Some(TreeLimit { at: node.at, name, replaces, quota: Quota::Unlimited });
    }
    let unit_at = map.get("unit").map_or(node.at, |unit| unit.at);
    let seconds = unit.and_then(|unit| UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&unit)));
    if seconds.is_none() {
        let help = "write second, minute, hour, day, week, month or year";
        map.report_missing("unit", unit_at, "no valid `unit`", help, mistakes);
    }
    let count = map.text("requests_per_unit", mistakes).unwrap_or_else(|| "0".to_owned());
    let Ok(count) = count.parse::<u32>() else {
        let at = map.get("requests_per_unit").map_or(node.at, |count| count.at);
        let help = format!("write a number from 0 to {}", u32::MAX);
        mistakes.report(at, format!("`{count}` is no number of requests"), help);
        return None;
    };
    let quota = match NonZeroU32::new(count) {
        None => Quota::Nothing,
        Some(count) => Quota::Rate(Rate { count, per: Duration::from_secs(seconds?.1) }),
    };
    seconds.map(|_| TreeLimit { at: node.at, name, replaces, quota })
}

/// Where a key of the service stands. `None`: it has no such key.
fn place_of(key: &str) -> Option<&'static str> {
    match key {
        "domain" => Some("at the beginning of the file"),
        _ if LIMIT_KEYS.contains(&key) => Some("in `rate_limit`"),
        _ if BRANCH_KEYS.contains(&key) => Some("in an entry of `descriptors`"),
        _ => None,
    }
}

// The configurations in a file: one, several after each other, or the contents of `ConfigMap`s of Kubernetes.

/// The configurations in a file. Each should describe a domain.
pub(super) fn documents(name: &Path, text: &str, mistakes: &mut Mistakes) -> Vec<Node> {
    let mut configurations = Vec::new();
    let mut has_plain_one = false;
    for document in parse(name, text, mistakes) {
        if kind(&document).is_some() {
            unwrap(name, document, &mut configurations, mistakes);
        } else {
            if has_plain_one {
                let help = "remove it if it shall not hold, or give it a file of its own";
                mistakes.warn(
                    document.at,
                    "the service reads the first document of a file alone: this one holds here",
                    help,
                );
            }
            configurations.push(document);
            has_plain_one = true;
        }
    }
    configurations
}

/// Takes the configurations out of an object of Kubernetes.
fn unwrap(name: &Path, object: Node, configurations: &mut Vec<Node>, mistakes: &mut Mistakes) {
    match kind(&object) {
        Some("ConfigMap") => {
            for (key, value) in entries(&object, "data") {
                configurations.extend(value_of_data(name, key, value, mistakes));
            }
        }
        Some("List") => {
            let Some(Content::List(items)) = get(&object, "items").map(|items| &items.content) else { return };
            for item in items {
                unwrap(name, item.clone(), configurations, mistakes);
            }
        }
        Some(kind) => {
            let help = "nothing of it decides about calls; what the service reads stands in a `ConfigMap`";
            mistakes.warn(object.at, format!("`{kind}` is left out: it holds no configuration of the service"), help);
        }
        None => configurations.push(object),
    }
}

/// The configurations in one value of a `ConfigMap`: it is a file of the service.
fn value_of_data(name: &Path, key: &MapKey, value: &Node, mistakes: &mut Mistakes) -> Vec<Node> {
    let Content::Scalar(text) = &value.content else {
        let help = format!("write its text behind `{}: |`, indented", key.text);
        mistakes.report(value.at, format!("`{}` is {}, and not the text of a file", key.text, value.kind()), help);
        return Vec::new();
    };
    let file = format!("{}[{}]", name.display(), key.text);
    let is_named_so = [".yaml", ".yml"].iter().any(|ending| key.text.ends_with(ending));
    if !is_named_so && !holds_map(text) {
        let help = "the service reads files of YAML alone";
        mistakes.warn(key.at, format!("`{}` of the `ConfigMap` is left out: it is no map", key.text), help);
        return Vec::new();
    }
    documents(Path::new(&file), text, mistakes)
}

/// Whether a text is YAML with a map in it.
fn holds_map(text: &str) -> bool {
    let documents = parse(Path::new(""), text, &mut Mistakes::default());
    documents.iter().any(|document| matches!(document.content, Content::Map(_)))
}

fn parse(name: &Path, text: &str, mistakes: &mut Mistakes) -> Vec<Node> {
    // `${` is no variable there.
    let text = text.replace("${", "$${");
    let before = mistakes.len();
    let source = mistakes.source(SourceText::new(name, text.clone()));
    let documents = yaml::parse_foreign(&text, source, &|_| None, mistakes);
    if documents.is_empty() && mistakes.len() == before {
        let at = SourceRange { source, line: 1, column: 1, length: 1 };
        mistakes.report(at, "the file is empty", "a file has `domain:` and `descriptors:`");
    }
    documents
}

/// The kind of a Kubernetes object. `None`: it is no such object.
fn kind(node: &Node) -> Option<&str> {
    get(node, "apiVersion")?;
    match &get(node, "kind")?.content {
        Content::Scalar(kind) => Some(kind),
        _ => None,
    }
}

fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Content::Map(entries) = &node.content else { return None };
    entries.iter().find(|(name, _)| name.text == key).map(|(_, value)| value)
}

fn entries<'n>(node: &'n Node, key: &str) -> &'n [(MapKey, Node)] {
    match get(node, key).map(|value| &value.content) {
        Some(Content::Map(entries)) => entries,
        _ => &[],
    }
}
