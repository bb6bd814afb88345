//! Writes a tree as YAML.

use crate::config::yaml::Content;
use crate::config::yaml::MapKey;
use crate::config::yaml::Node;

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

const INDENT: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_mean_something_else_is_quoted() {
        for plain in ["127.0.0.1:8080", "1/second; 20/minute", "client_ip", "/login", "POST /login", "64KiB"] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in ["", "~", "null", "- a", "*", "a: b", "a #b", "[::1]:80", "a,b", "a:", " a", "{x}", "é", "&a"] {
            assert!(scalar(quoted).starts_with('"'), "{quoted}");
        }
    }
}
