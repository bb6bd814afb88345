//! The sources as these tests read them: text, not syntax trees.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use super::MAY_IMPORT;

/// A file below `src/`.
pub(crate) struct Source {
    /// The top-level module the file belongs to.
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
                let first = below.components().next().expect("a file has a name");
                let module = Path::new(first.as_os_str()).file_stem().expect("a file has a name");
                let text = fs::read_to_string(&path).expect("src can be read");
                found.push(Source { module: module.to_string_lossy().into_owned(), path: below, text });
            }
        }
    }
    assert!(found.len() > MAY_IMPORT.len(), "the sources were not found");
    found
}

/// The top-level modules a text names after `crate::`.
pub(crate) fn imports(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect())
        .collect()
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
