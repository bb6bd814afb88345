//! The help of every mistake in `bad`, done as it says: the mistake is gone, and nothing new is wrong in its place.

mod advice;
mod proposals;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use portcullis::config;
use portcullis::config::{Diagnostic, Severity};
use regex::Regex;
use tempfile::TempDir;

use self::advice::{ADVICE, BY_HAND, FOLLOWED_BY, FOLLOWED_BY_DANGER, OF_THE_READER};
use self::proposals::{Proposal, proposals};
use self::tree::{Parsed, Place, Step, Tree, TreePath};
use super::named_files::named_files;
use super::{environment, files};

/// The folder `bad` with the files that helps name beside it.
fn folder() -> TempDir {
    let folder = named_files();
    let bad = folder.path().join("bad");
    copy(Path::new("tests/config"), folder.path());
    copy(folder.path(), &bad);
    folder
}

/// Copies what is not there yet.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            if !to.starts_with(&source) {
                copy(&source, &target);
            }
        } else if !target.exists() {
            fs::copy(&source, &target).expect("a file is copied");
        }
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug)]
struct Found {
    /// Without the numbers of lines, which another spelling of the file changes.
    message: String,
    help: String,
    is_warning: bool,
    places: Vec<Place>,
    /// The file and the line, where it is in another file, such as a list.
    elsewhere: Option<(PathBuf, usize)>,
}

impl Found {
    fn of(diagnostic: Diagnostic, file: &Path, parsed: &Parsed) -> Self {
        let Diagnostic { line, column, message, severity, .. } = diagnostic;
        let elsewhere = (diagnostic.file != file).then_some((diagnostic.file, line));
        let places = if elsewhere.is_none() { parsed.at(line, column) } else { Vec::new() };
        let help = diagnostic.help.unwrap_or_default();
        let is_warning = severity == Severity::Warning;
        Self { message: without_numbers_of_lines(&message), help, is_warning, places, elsewhere }
    }

    /// Whether it stands at a path, below it or above it.
    fn is_at(&self, path: &[Step]) -> bool {
        self.places.iter().any(|place| {
            let (Place::Key(own) | Place::Value(own)) = place;
            own.starts_with(path) || path.starts_with(own)
        })
    }
}

fn without_numbers_of_lines(message: &str) -> String {
    static NUMBERS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"line \d+|at \d+:\d+").expect("a pattern"));
    NUMBERS.replace_all(message, "line N").into_owned()
}

/// What is wrong with a text, as if it were the content of a file.
fn check_text(file: &Path, text: &str) -> Vec<Diagnostic> {
    match config::read(file, text.to_owned(), &environment) {
        Ok(settings) => settings.warnings,
        Err(mistakes) => mistakes,
    }
}

/// The same of a tree.
fn check(file: &Path, tree: &Tree) -> Vec<Found> {
    let text = tree.write();
    let parsed = Parsed::read(&text).expect("what was written can be read");
    check_text(file, &text).into_iter().map(|diagnostic| Found::of(diagnostic, file, &parsed)).collect()
}

/// The trees that a person may have written who did what is proposed, each with the path that was changed.
fn applied(tree: &Tree, place: &Place, proposal: &Proposal) -> Vec<(TreePath, Tree)> {
    let (Place::Key(path) | Place::Value(path)) = place;
    match proposal {
        Proposal::Remove => removed(tree, path),
        Proposal::RemoveKey(name) => {
            let above = (0..=path.len()).rev().map(|length| [&path[..length], &[Step::Key(name.clone())]].concat());
            above.filter(|path| tree.get(path).is_some()).flat_map(|path| removed(tree, &path)).collect()
        }
        Proposal::Change(change) => {
            let changed = tree.get(path).and_then(|value| value.changed(*change));
            changed.and_then(|value| tree.with(path, value)).map(|tree| (path.clone(), tree)).into_iter().collect()
        }
        Proposal::Write(text) => written(tree, place, &advice::filled(text)),
    }
}

/// Without what is at a path, and without what would be left empty above it, or the whole item of a list.
fn removed(tree: &Tree, path: &[Step]) -> Vec<(TreePath, Tree)> {
    let mut trees = Vec::new();
    for length in (1..=path.len()).rev() {
        let above = &path[..length];
        trees.extend(tree.without(above).map(|tree| (above.to_vec(), tree)));
        let is_alone = match tree.get(&path[..length - 1]) {
            Some(Tree::Map(entries)) => entries.len() == 1,
            Some(Tree::List(_)) => false,
            _ => true,
        };
        let is_in_item = length >= 2 && matches!(path[length - 2], Step::Item(_));
        if !is_alone && !is_in_item {
            break;
        }
    }
    trees
}

/// With a text at a place, as far as it may be meant: a name of a key, a value, a part of one, or entries of a map.
fn written(tree: &Tree, place: &Place, text: &str) -> Vec<(TreePath, Tree)> {
    let (Place::Key(path) | Place::Value(path)) = place;
    let read = Parsed::read(text).map(|parsed| parsed.tree);
    let mut trees: Vec<(TreePath, Option<Tree>)> = Vec::new();
    match (place, tree.get(path)) {
        (Place::Key(path), _) => trees.push((path.clone(), tree.renamed(path, text))),
        (Place::Value(path), Some(Tree::Scalar(own))) => {
            let part = advice::with_part(own, text).map(Tree::Scalar);
            trees.push((path.clone(), part.and_then(|value| tree.with(path, value))));
        }
        _ => {}
    }
    if let (Place::Value(_), Some(value)) = (place, &read) {
        trees.push((path.clone(), tree.with(path, value.clone())));
        // A list in place of the one that the value is in.
        if let (Some((Step::Item(_), list)), Tree::List(_)) = (path.split_last(), value) {
            trees.push((list.to_vec(), tree.with(list, value.clone())));
        }
    }
    if let Place::Value(_) = place {
        trees.push((path.clone(), tree.with(path, Tree::Scalar(text.to_owned()))));
    }
    if let Some(Tree::Map(entries)) = read {
        for length in (0..=path.len()).rev() {
            trees.push((path[..length].to_vec(), tree.with_entries(&path[..length], &entries)));
        }
        // In place of the entry itself, beside it or further up.
        if let Some((Step::Key(_), parent)) = path.split_last() {
            for length in (0..=parent.len()).rev() {
                let without = tree.without(path);
                let above = &parent[..length];
                trees.push((above.to_vec(), without.and_then(|tree| tree.with_entries(above, &entries))));
            }
        }
        for route in routes(tree) {
            trees.push((route.clone(), tree.with_entries(&route, &entries)));
            for part in ["outcome", "match"] {
                let part = [&route[..], &[Step::Key(part.to_owned())]].concat();
                trees.push((part.clone(), tree.with_entries(&part, &entries)));
                if matches!(tree.get(&part), Some(Tree::Scalar(_))) {
                    trees.push((part.clone(), tree.with(&part, Tree::Map(entries.clone()))));
                }
            }
        }
        // A route of its own, for one host and for no login.
        let matched = [("host", "shop.internal"), ("path", "/account")];
        let matched = Tree::Map(matched.map(|(key, value)| (key.to_owned(), Tree::Scalar(value.to_owned()))).into());
        let route = [vec![("match".to_owned(), matched)], entries].concat();
        trees.push((vec![Step::Key("routes".to_owned())], tree.with_item("routes", Tree::Map(route))));
    }
    trees.into_iter().filter_map(|(path, tree)| Some((path, tree?))).collect()
}

fn routes(tree: &Tree) -> Vec<TreePath> {
    let path = vec![Step::Key("routes".to_owned())];
    match tree.get(&path) {
        Some(Tree::List(items)) => (0..items.len()).map(|at| [&path[..], &[Step::Item(at)]].concat()).collect(),
        _ => Vec::new(),
    }
}

/// A configuration of `bad`, with what was wrong with it before anything was done.
struct Case<'c> {
    file: &'c Path,
    before: Vec<Found>,
}

impl Case<'_> {
    /// Whether a proposal for what is wrong with a tree helps. What it leads to is said otherwise.
    fn mend(&self, tree: &Tree, wrong: &Found, proposal: &Proposal, steps: usize) -> Result<(), String> {
        let mut problems = Vec::new();
        for place in &wrong.places {
            for (path, changed) in applied(tree, place, proposal) {
                match self.judge(&path, &changed, wrong, steps) {
                    Ok(()) => return Ok(()),
                    Err(problem) => problems.push(format!("{path:?}: {problem}")),
                }
            }
        }
        Err(problems.join("\n    "))
    }

    /// Whether a mistake is gone from a tree that was changed at a path, and nothing is wrong there instead.
    fn judge(&self, path: &[Step], changed: &Tree, wrong: &Found, steps: usize) -> Result<(), String> {
        let after = check(self.file, changed);
        let count = |all: &[Found]| all.iter().filter(|found| found.message == wrong.message).count();
        if count(&after) >= count(&self.before).max(1) {
            return Err("the mistake is still there".to_owned());
        }
        let is_new = |found: &&Found| !self.before.iter().any(|known| known.message == found.message);
        let is_bad = |found: &&Found| !found.is_warning || found.is_at(path);
        let Some(new) = after.iter().filter(is_new).find(is_bad) else { return Ok(()) };
        let Found { message, help, .. } = new;
        if FOLLOWED_BY_DANGER.iter().any(|(danger, _)| message.contains(danger)) {
            return Ok(());
        }
        // Some values need something else beside them, which their own mistake says.
        if steps > 0 && FOLLOWED_BY.iter().any(|(mistake, _)| message.contains(mistake)) {
            let mended = proposals(help).into_iter().map(|proposal| self.mend(changed, new, &proposal, steps - 1));
            let why: Vec<_> = mended.collect();
            return if why.iter().any(Result::is_ok) {
                Ok(())
            } else {
                Err(format!("then, and its help does not help: {message} (help: {help}) {why:?}"))
            };
        }
        Err(format!("then: {message} (help: {help})"))
    }

    /// Whether a proposal helps in another file, whose line it replaces.
    fn mend_elsewhere(&self, tree: &Tree, wrong: &Found, text: &str) -> Result<(), String> {
        let Some((file, line)) = &wrong.elsewhere else { return Err("it is in this file".to_owned()) };
        let before = fs::read_to_string(file).expect("the file that was read");
        let replaced = |(at, own): (usize, &str)| if at + 1 == *line { text.to_owned() } else { own.to_owned() };
        let lines: Vec<String> = before.lines().enumerate().map(replaced).collect();
        fs::write(file, lines.join("\n") + "\n").expect("the file is written");
        let after = check(self.file, tree);
        fs::write(file, before).expect("the file is as it was");
        let is_there = |found: &Found| found.elsewhere.as_ref() == wrong.elsewhere.as_ref();
        match after.iter().find(|found| is_there(found)) {
            Some(Found { message, .. }) => Err(format!("then: {message}")),
            None => Ok(()),
        }
    }
}

/// What is said of the helps of all files.
#[derive(Default)]
struct Tally {
    applied: usize,
    failed: Vec<String>,
    advice: BTreeSet<&'static str>,
}

impl Tally {
    fn fail(&mut self, file: &Path, wrong: &Found, problem: &str) {
        let (name, Found { message, help, .. }) = (file.file_name().unwrap_or_default().display(), wrong);
        self.failed.push(format!("{name}: {message}\n  help: {help}\n    {problem}"));
    }

    /// Applies every help of a file that is YAML.
    fn apply(&mut self, case: &Case<'_>, tree: &Tree) {
        for wrong in &case.before {
            if let Some((advice, _)) = ADVICE.iter().find(|(advice, _)| wrong.help.contains(advice)) {
                self.advice.insert(advice);
                continue;
            }
            let proposals = proposals(&wrong.help);
            if proposals.is_empty() {
                self.fail(case.file, wrong, "it proposes nothing, and is not among the advice");
            }
            for proposal in proposals {
                self.applied += 1;
                let mended = match (&proposal, &wrong.elsewhere) {
                    (Proposal::Write(text), Some(_)) => case.mend_elsewhere(tree, wrong, text),
                    _ => case.mend(tree, wrong, &proposal, 3),
                };
                if let Err(problem) = mended {
                    self.fail(case.file, wrong, &format!("{proposal:?}\n    {problem}"));
                }
            }
        }
    }

    /// Applies the helps of mistakes of the reader: what is left of the file is what they say to keep.
    fn apply_of_reader(&mut self, file: &Path, text: &str, before: &[Found]) {
        let parsed = Parsed { tree: Tree::Nothing, places: Vec::new() };
        for diagnostic in check_text(file, text) {
            let wrong = Found::of(diagnostic, file, &parsed);
            if before.iter().any(|known| known.message == wrong.message) {
                continue;
            }
            match OF_THE_READER.iter().find(|(help, _)| wrong.help.contains(help)) {
                Some(_) => self.applied += 1,
                None => self.fail(file, &wrong, "it is gone when the file is written anew"),
            }
        }
    }
}

#[test]
fn every_help_helps() {
    let folder = folder();
    let mut tally = Tally::default();
    for name in files("tests/config/bad", "yaml") {
        let name = name.file_name().expect("a name");
        let file = folder.path().join("bad").join(name);
        let text = String::from_utf8_lossy(&fs::read(&file).expect("a file")).into_owned();
        let by_hand = BY_HAND.iter().find(|(of, ..)| name == *of);
        match (Parsed::read(&text).map(|parsed| parsed.tree), by_hand) {
            (_, Some((_, from, to))) => {
                let rest = from.strip_suffix('$').and_then(|from| text.find(from));
                let mended = rest.map_or_else(|| text.replacen(from, to, 1), |at| text[..at].to_owned() + to);
                assert_ne!(mended, text, "{name:?}");
                let left = check_text(&file, &mended);
                // What such a text holds beside its mistake may be that of an example.
                if let Some(left) = left.iter().find(|left| left.severity == Severity::Error) {
                    tally.failed.push(format!("{name:?} as a person has mended it: {}", left.message));
                }
                tally.applied += 1;
            }
            (None, None) => tally.failed.push(format!("{name:?} is no YAML, and nobody has mended it by hand")),
            (Some(tree), None) => {
                let case = Case { file: &file, before: check(&file, &tree) };
                tally.apply_of_reader(&file, &text, &case.before);
                tally.apply(&case, &tree);
            }
        }
    }
    let Tally { applied, failed, advice } = tally;
    assert!(failed.is_empty(), "{} of {applied} do not help:\n{}", failed.len(), failed.join("\n"));
    let unused: Vec<_> = ADVICE.iter().map(|(words, _)| *words).filter(|words| !advice.contains(words)).collect();
    assert!(unused.is_empty(), "no help is this advice: {unused:#?}");
    assert!(applied >= 400, "only {applied}");
}
