//! Files and folders are laid out alike.

use std::collections::BTreeSet;
use std::path::Path;

use super::source::{sources, without_tests};

/// Of so many files the `mod.rs` may hold the subject that the others serve. Beside more it is a list.
const FEW: usize = 3;

#[test]
fn a_folder_of_many_files_is_listed_by_its_mod_file_alone() {
    const LOGIC: &[&str] = &["fn", "impl", "struct", "enum", "trait", "const", "static", "type"];
    let sources = sources();
    for source in sources.iter().filter(|source| source.path.ends_with("mod.rs") && !is_of_tests(&source.path)) {
        let folder = source.path.parent().expect("it is in a folder");
        let beside = sources.iter().filter(|other| other.path != source.path && !is_of_tests(&other.path));
        let entries = beside.filter_map(|other| other.path.strip_prefix(folder).ok()?.components().next());
        if entries.collect::<BTreeSet<_>>().len() <= FEW {
            continue;
        }
        let logic = without_tests(&source.text).lines().find_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "async");
            words.next().filter(|word| LOGIC.contains(&word.trim_end_matches('<'))).map(|_| line.to_owned())
        });
        let path = source.path.display();
        assert_eq!(
            logic, None,
            "{path}: the `mod.rs` of many files lists them, re-exports their names and has no code"
        );
    }
}

#[test]
fn no_file_stands_beside_a_folder_of_its_name() {
    let sources = sources();
    for source in &sources {
        let folder = source.path.with_extension("");
        let in_folder = sources.iter().find(|other| other.path.starts_with(&folder) && !is_of_tests(&other.path));
        let in_folder = in_folder.map(|other| &other.path);
        assert_eq!(in_folder, None, "{} is to be the `mod.rs` of its folder", source.path.display());
    }
}

fn is_of_tests(path: &Path) -> bool {
    path.with_extension("").components().any(|part| part.as_os_str() == "tests")
}
