//! The sources as these tests read them: text, not syntax trees.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::MAY_IMPORT;

/// Folders of modules. A module in one of them is named as if it stood beside the others.
pub(crate) const ROOMS: [&str; 3] = ["words", "wire", "rules"];

/// A file below `src/`.
pub(crate) struct Source {
    /// The module the file belongs to: at the top, or in a room.
    pub(crate) module: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Every file below `src/` that is not made of tests.
pub(crate) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("src can be read") {
            let path = entry.expect("src can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let below = path.strip_prefix(&root).expect("found below src").to_owned();
                let is_room = |part: &Component<'_>| ROOMS.iter().any(|room| part.as_os_str() == *room);
                let first = below.components().find(|part| !is_room(part)).expect("a file has a name");
                let module = Path::new(first.as_os_str()).file_stem().expect("a file has a name");
                let text = fs::read_to_string(&path).expect("src can be read");
                found.push(Source { module: module.to_string_lossy().into_owned(), path: below, text });
            }
        }
    }
    assert!(found.len() > MAY_IMPORT.len(), "the sources were not found");
    found
}

/// The modules a text names after `crate::`, or after `crate::` and a room.
pub(crate) fn imports(text: &str) -> BTreeSet<String> {
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = BTreeSet::new();
    for rest in code.join("\n").split("crate::").skip(1) {
        let in_room = |room: &str| rest.strip_prefix(room)?.strip_prefix("::");
        let rest = ROOMS.iter().find_map(|room| in_room(room)).unwrap_or(rest);
        let names = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => rest.split(|letter| !is_of_name(letter)).next().unwrap_or_default(),
        };
        let names = names.split(',').map(|name| name.trim().chars().take_while(|letter| is_of_name(*letter)).collect());
        found.extend(names.filter(|name: &String| !name.is_empty()));
    }
    found
}

/// `use a::b::{c, d};`
pub(crate) struct UseStatement {
    /// For which module or block of the file it is: how many of them began before, and how deep it is indented.
    pub(crate) scope: (usize, usize),
    /// What stands before `use`, attributes included.
    pub(crate) introduction: String,
    /// `a::b`
    pub(crate) module: String,
    /// `c` and `d`
    pub(crate) names: Vec<String>,
}

/// The `use` statements of a text, in their order.
pub(crate) fn use_statements(text: &str) -> Vec<UseStatement> {
    let mut found = Vec::new();
    let mut attribute = "";
    let mut blocks = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        blocks += usize::from(trimmed.ends_with('{') && (trimmed.contains("mod ") || trimmed.contains("fn ")));
        let Some((visibility, first)) = trimmed.split_once("use ").filter(|(before, _)| is_visibility(before)) else {
            attribute = if trimmed.starts_with("#[") { trimmed } else { "" };
            continue;
        };
        let mut path = first.to_owned();
        while !path.ends_with(';') {
            path.push_str(lines.next().expect("a statement ends").trim());
        }
        let path = path.trim_end_matches(';');
        let (module, names) = match path.split_once('{') {
            Some((module, names)) => (module, names.trim_end_matches('}')),
            None => path.rsplit_once("::").map_or(("", path), |(module, name)| (module, name)),
        };
        found.push(UseStatement {
            scope: (blocks, line.len() - trimmed.len()),
            introduction: format!("{attribute}{visibility}"),
            module: module.trim_end_matches("::").to_owned(),
            names: names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        });
        attribute = "";
    }
    found
}

fn is_visibility(before: &str) -> bool {
    before.is_empty() || (before.starts_with("pub") && before.ends_with(' ') && !before.contains(';'))
}

/// The code of a file without its comments and its tests, which stand in a file of their own or come last.
pub(crate) fn without_tests(text: &str) -> String {
    let mut code = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() == "#[cfg(test)]" {
            let is_a_file = lines.next().is_some_and(|module| module.starts_with("mod ") && module.ends_with(';'));
            if !is_a_file {
                break;
            }
        } else if !line.trim_start().starts_with("//") {
            code.push(line);
        }
    }
    code.join("\n")
}
