//! No file below `src/` imports, over others or directly, a file that imports it; and files of folders are laid out alike.
//!
//! An import of a name that a `mod.rs` re-exports is an import of the file that defines the name.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use super::source::sources;
use super::source::without_tests;

#[test]
fn files_import_in_no_ring() {
    let tree = Tree::read();
    let mut waiting: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        tree.files.keys().map(|file| (file, tree.imports_of(file))).collect();
    assert!(waiting.values().map(BTreeSet::len).sum::<usize>() > waiting.len(), "the imports were not found");
    // A file is in no ring when all it imports is in none, or when nothing that waits imports it.
    while let Some(free) = waiting
        .iter()
        .find(|(file, imports)| {
            let imports_none = imports.iter().all(|import| !waiting.contains_key(import));
            imports_none || waiting.values().all(|imports| !imports.contains(**file))
        })
        .map(|(file, _)| *file)
    {
        waiting.remove(free);
    }
    assert!(waiting.is_empty(), "a ring of imports: {}", ring(&waiting));
}

/// One ring among files of which each imports another of them.
fn ring(waiting: &BTreeMap<&ModulePath, BTreeSet<ModulePath>>) -> String {
    let mut way: Vec<&ModulePath> = waiting.keys().take(1).copied().collect();
    loop {
        let here = way[way.len() - 1];
        let next = waiting[here].iter().find(|import| waiting.contains_key(import)).expect("each imports another");
        if let Some(start) = way.iter().position(|file| *file == next) {
            way.push(next);
            return way[start..].iter().map(|file| file.join("::")).collect::<Vec<_>>().join(" -> ");
        }
        way.push(next);
    }
}

#[test]
fn a_folder_is_listed_by_its_mod_file_alone() {
    const LOGIC: &[&str] = &["fn", "impl", "struct", "enum", "trait", "const", "static", "type"];
    let sources = sources();
    let paths: BTreeSet<&Path> = sources.iter().map(|source| source.path.as_path()).collect();
    for source in &sources {
        let path = source.path.display();
        if source.path.ends_with("mod.rs") && !source.path.components().any(|part| part.as_os_str() == "tests") {
            let logic = without_tests(&source.text).lines().find_map(|line| {
                let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "async");
                words.next().filter(|word| LOGIC.contains(&word.trim_end_matches('<'))).map(|_| line.to_owned())
            });
            assert_eq!(logic, None, "{path}: a `mod.rs` lists its files and re-exports their names, and has no code");
        }
        let folder = source.path.with_extension("");
        let beside = |path: &&&Path| {
            let is_of_tests = path.starts_with(folder.join("tests")) || path.ends_with("fuzz.rs");
            path.starts_with(&folder) && !is_of_tests
        };
        let in_folder = paths.iter().find(beside);
        assert_eq!(in_folder, None, "{path} is beside a folder of its name: it is to be its `mod.rs`");
    }
}

/// The segments below `crate::`.
type ModulePath = Vec<String>;

/// What the files of `src/` import.
struct Tree {
    files: BTreeMap<ModulePath, Vec<Import>>,
}

struct Import {
    target: ModulePath,
    /// The name under which a `pub use` passes the target on.
    exported: Option<String>,
}

impl Tree {
    fn read() -> Self {
        let sources: Vec<_> = sources()
            .into_iter()
            .map(|source| (module_path(&source.path), without_tests(&source.text)))
            .filter(|(path, _)| !path.iter().any(|segment| segment == "tests"))
            .collect();
        let paths: BTreeSet<ModulePath> = sources.iter().map(|(path, _)| path.clone()).collect();
        let files = sources.iter().map(|(path, code)| (path.clone(), imports(path, code, &paths))).collect();
        Self { files }
    }

    /// The files that define what `file` imports. What a `mod.rs` re-exports of its own folder is no import.
    fn imports_of(&self, file: &ModulePath) -> BTreeSet<ModulePath> {
        let imports = self.files[file].iter();
        let defined = imports.filter_map(|import| {
            let definition = self.definition(&import.target)?;
            let is_re_export = import.exported.is_some() && definition.starts_with(file);
            (!is_re_export && definition != *file).then_some(definition)
        });
        defined.collect()
    }

    /// The file that defines what a path names, through any number of re-exports.
    fn definition(&self, target: &[String]) -> Option<ModulePath> {
        let length = (1..=target.len()).rev().find(|length| self.files.contains_key(&target[..*length]))?;
        let (file, rest) = target.split_at(length);
        let Some((name, rest)) = rest.split_first() else { return Some(file.to_vec()) };
        let export = self.files[file].iter().find(|import| import.exported.as_ref() == Some(name));
        let through = export.and_then(|export| self.definition(&[&export.target, rest].concat()));
        through.or_else(|| Some(file.to_vec()))
    }
}

/// `store/redis/mod.rs` is `store::redis`.
fn module_path(path: &Path) -> ModulePath {
    let path = path.with_extension("");
    let segments = path.components().map(|segment| segment.as_os_str().to_string_lossy().into_owned());
    segments.filter(|segment| segment != "mod").collect()
}

/// What `use` lines and paths within the code name, from the root of the crate.
fn imports(file: &ModulePath, code: &str, files: &BTreeSet<ModulePath>) -> Vec<Import> {
    let from_root = |path: &str| -> Option<ModulePath> {
        let segments: ModulePath = path.split("::").map(str::to_owned).collect();
        let (first, rest) = segments.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "super" => Some([&file[..file.len() - 1], rest].concat()),
            "self" => Some([file, rest].concat()),
            _ if files.contains(&[file.as_slice(), std::slice::from_ref(first)].concat()) => {
                Some([file.as_slice(), &segments].concat())
            }
            _ => None,
        }
    };
    let mut found = Vec::new();
    for line in code.lines() {
        if let Some((public, used)) = use_line(line) {
            let (path, alias) = used.split_once(" as ").map_or((used, None), |(path, alias)| (path, Some(alias)));
            let Some(target) = from_root(path) else { continue };
            let name = alias.or(path.rsplit("::").next()).filter(|_| public).map(str::to_owned);
            found.push(Import { target, exported: name });
        } else {
            let paths = line.split(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
            let rooted = paths.filter(|path| path.starts_with("crate::") || path.starts_with("super::"));
            let targets = rooted.filter_map(|path| from_root(path.trim_end_matches(':')));
            found.extend(targets.map(|target| Import { target, exported: None }));
        }
    }
    found
}

/// Whether a line is `pub use` of any visibility, and the path that it uses.
fn use_line(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start().strip_suffix(';')?;
    if let Some(path) = line.strip_prefix("use ") {
        return Some((false, path));
    }
    let (visibility, path) = line.split_once(" use ")?;
    visibility.starts_with("pub").then_some((true, path))
}
