//! Configurations from text to settings: each mistake with its exact message, each accepted spelling, every recipe.

mod answers;
mod everything;
mod good;
mod helps;
#[expect(unreachable_pub, reason = "other test binaries use it too")]
#[path = "../support/json_schema.rs"]
mod json_schema;
#[expect(unreachable_pub, reason = "other test binaries use it too")]
#[path = "../support/named_files.rs"]
mod named_files;
mod schema_agrees;
mod warnings;

use std::fs;
use std::path::{Path, PathBuf};

use portcullis::config::{load_with, render};

/// What the files here find in the environment.
fn environment(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("8080".to_owned()),
        "NOT_A_PORT" => Some("eighty".to_owned()),
        "INJECTION" => Some("8080\nadmin: {address: 0.0.0.0:9090}".to_owned()),
        _ => None,
    }
}

/// Files of a folder beside this one, in order, as a person in the package's folder would name them.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| Path::new(folder).join(entry.expect("an entry").file_name()))
        .filter(|file| file.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

#[test]
fn every_mistake_is_told_with_its_place_and_what_to_write_instead() {
    let files = files("tests/config/bad", "yaml");
    assert!(files.len() >= 60, "only {} files", files.len());
    let mut different = Vec::new();
    for file in &files {
        let told = match load_with(file, &environment) {
            Ok(_) => format!("no mistake was found in {}\n", file.display()),
            Err(mistakes) => render(&mistakes, false),
        };
        let beside = file.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&beside, &told).expect("the expected text is written");
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        if told != expected {
            different.push(format!("{}\nexpected:\n{expected}\ntold:\n{told}", file.display()));
        }
    }
    assert!(different.is_empty(), "UPDATE_EXPECT=1 rewrites them; read the difference.\n{}", different.join("\n"));
}

#[test]
fn every_mistake_comes_with_help_and_one_place() {
    for file in files("tests/config/bad", "yaml") {
        for mistake in load_with(&file, &environment).expect_err("a mistake") {
            assert!(mistake.help.as_ref().is_some_and(|help| help.len() > 5), "{mistake:?}");
            // People and programs are told of one place.
            let place = format!("--> {}:{}:{}\n", mistake.file.display(), mistake.line, mistake.column);
            assert!(render(&[mistake], false).contains(&place), "{place}");
        }
    }
}

#[test]
fn every_text_beside_a_mistake_has_its_file() {
    for text in files("tests/config/bad", "txt") {
        assert!(text.with_extension("yaml").exists(), "{}", text.display());
    }
}

#[test]
fn every_recipe_is_a_good_configuration() {
    let recipes = files("config", "yaml");
    assert!(recipes.len() >= 4);
    for file in recipes {
        if let Err(mistakes) = load_with(&file, &|_| None) {
            panic!("{}", render(&mistakes, false));
        }
    }
}
