//! `reference.md`: every key of the configuration, from its JSON Schema.

use std::collections::{BTreeMap, VecDeque};

use portcullis::config::schema;
use serde_json::Value;

use super::is_up_to_date;

const INTRODUCTION: &str = "\
# Configuration reference

Every key that a configuration may have. `portcullis schema` prints the same as JSON Schema, for editors;
`config/everything.yaml` in the repository has every key once, in a file that loads.

- A file is YAML. A key that is unknown or written twice is an error; `portcullis check` names the one that you probably meant.
- `${NAME}` and `${NAME:-default}` inside a value are taken from the environment. `$${` is a literal `${`.
- A *duration* is `500ms`, `20s`, `3m`, `1h` or `7d`. A *size* is `64KiB` or `10MiB`.
- Paths of files are relative to the configuration file.
- **Bold** keys must be there.
";

#[test]
fn the_page_has_every_key_of_the_schema() {
    is_up_to_date("reference.md", &page());
}

fn page() -> String {
    let schema = schema();
    let sections = sections(&schema);
    let written: Vec<String> = sections.iter().map(|section| written(section, &schema, &sections)).collect();
    format!("{INTRODUCTION}{}", written.concat())
}

/// A section: what it is, and a row for each key.
fn written((paths, name): &(Vec<String>, String), schema: &Value, sections: &[(Vec<String>, String)]) -> String {
    let section = &schema["$defs"][name];
    let also: Vec<String> = paths[1..].iter().map(|path| format!("`{path}`")).collect();
    let also = match &*also {
        [] => String::new(),
        paths => format!("\nThe same keys stand under {}.\n", paths.join(", ")),
    };
    let rows = keys(section).into_iter().map(|(key, property, is_required)| {
        let key = if is_required { format!("**`{key}`**") } else { format!("`{key}`") };
        let value = value(property, &|name| link(sections, name));
        format!("| {key} | {value} | {} |\n", description(property).replace('|', "\\|"))
    });
    format!(
        "\n## {}\n\n{}\n{also}\n| key | value | meaning |\n| --- | --- | --- |\n{}",
        title(&paths[0]),
        description(section),
        rows.collect::<String>()
    )
}

/// The sections of the schema in the order in which a file reaches them, each with the paths to it.
fn sections(schema: &Value) -> Vec<(Vec<String>, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    let mut open = VecDeque::from([(String::new(), reference(schema).expect("the root"))]);
    while let Some((path, name)) = open.pop_front() {
        if let Some((paths, _)) = found.iter_mut().find(|(_, known)| *known == name) {
            paths.push(path);
            continue;
        }
        for (key, property, _) in keys(&schema["$defs"][&name]) {
            let dot = if path.is_empty() { "" } else { "." };
            let mut below = BTreeMap::new();
            references(property, &format!("{path}{dot}{key}"), &mut below);
            open.extend(below.into_iter().map(|(name, path)| (path, name)));
        }
        found.push((vec![path], name));
    }
    found
}

/// The sections that stand under a key, each with its path: `upstreams.NAME` for the values of a map.
fn references(value: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    if let Some(name) = reference(value) {
        found.insert(name, path.to_owned());
    }
    if value["additionalProperties"].is_object() {
        references(&value["additionalProperties"], &format!("{path}.NAME"), found);
    }
    if value["items"].is_object() {
        references(&value["items"], path, found);
    }
    for choice in value["anyOf"].as_array().into_iter().flatten() {
        references(choice, path, found);
    }
}

fn reference(value: &Value) -> Option<String> {
    Some(value["$ref"].as_str()?.trim_start_matches("#/$defs/").to_owned())
}

/// The keys of a section, those first that must be there.
fn keys(section: &Value) -> Vec<(&str, &Value, bool)> {
    let required = |key: &str| section["required"].as_array().is_some_and(|keys| keys.iter().any(|name| name == key));
    let properties = section["properties"].as_object().into_iter().flatten();
    let mut keys: Vec<_> = properties.map(|(key, property)| (&**key, property, required(key))).collect();
    keys.sort_by_key(|(key, _, is_required)| (!is_required, *key));
    keys
}

fn title(path: &str) -> &str {
    if path.is_empty() { "Top level" } else { path }
}

fn description(value: &Value) -> &str {
    value["description"].as_str().expect("every key and every section is described")
}

fn link(sections: &[(Vec<String>, String)], name: &str) -> String {
    let (paths, _) = sections.iter().find(|(_, known)| known == name).expect("every section is reached");
    let title = title(&paths[0]);
    format!("[{title}](#{})", title.to_lowercase().replace(' ', "-").replace('.', ""))
}

/// What may stand under a key, in words.
fn value(schema: &Value, link: &dyn Fn(&str) -> String) -> String {
    if let Some(name) = reference(schema) {
        return link(&name);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{}`", word.as_str().expect("a word"))).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        // Any value may come from the environment: that is said once, at the top.
        let is_said = |choice: &&Value| choice["pattern"] != "(?:^|[^$])\\$\\{" && choice["type"] != "null";
        let choices = choices.iter().filter(is_said);
        let mut said: Vec<String> = choices.map(|choice| value(choice, link)).collect();
        if let [one, many] = &*said
            && *many == format!("list of {one}")
        {
            said = vec![format!("{one}, or a list")];
        }
        return said.join(", or ");
    }
    if schema["additionalProperties"].is_object() {
        return format!("map of names to {}", value(&schema["additionalProperties"], link));
    }
    if schema["items"].is_object() {
        return format!("list of {}", value(&schema["items"], link));
    }
    match schema["title"].as_str() {
        Some("selector") => "[selector](keys.md)",
        Some(title) => title,
        None => "text",
    }
    .to_owned()
}
