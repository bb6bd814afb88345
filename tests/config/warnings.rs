//! Warnings of `check`, and files without any.

use std::fs;
use std::path::Path;

use portcullis::config::{Diagnostic, Severity, load_with, render};

use super::everything::uncommented;
use super::files;
use super::named_files::named_files;

#[track_caller]
fn warnings(file: &Path) -> Vec<Diagnostic> {
    let settings = load_with(file, &|_| None).unwrap_or_else(|mistakes| panic!("{}", render(&mistakes, false)));
    settings.warnings
}

#[test]
fn every_warning_is_told_with_its_place_why_it_matters_and_what_to_write_instead() {
    let mut different = Vec::new();
    for file in files("tests/config/warned", "yaml") {
        let warnings = warnings(&file);
        assert!(warnings.iter().all(|warning| warning.severity == Severity::Warning && warning.help.is_some()));
        let told = render(&warnings, false);
        let beside = file.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&beside, &told).expect("the expected text is written");
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        if told != expected || told.is_empty() {
            different.push(format!("{}\nexpected:\n{expected}\ntold:\n{told}", file.display()));
        }
    }
    assert!(different.is_empty(), "UPDATE_EXPECT=1 rewrites them; read the difference.\n{}", different.join("\n"));
}

#[test]
fn no_recipe_has_a_warning() {
    for file in files("config", "yaml") {
        let warnings = warnings(&file);
        assert!(warnings.is_empty(), "{}", render(&warnings, false));
    }
}

#[test]
fn everything_has_no_warning_with_the_files_that_it_asks_for() {
    let folder = named_files();
    let file = folder.path().join("everything.yaml");
    let text = fs::read_to_string("config/everything.yaml").expect("the file");
    assert_ne!(uncommented(&text), text);
    fs::write(&file, uncommented(&text)).expect("the file is written");
    assert_eq!(render(&warnings(&file), false), "");
}
