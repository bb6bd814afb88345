//! Links lead to pages and headings that exist, and every page stands in the table of contents.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::page::{BOOK, Page, pages};

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let mut followed = 0;
    for page in pages() {
        for link in &page.links {
            if link.target.starts_with("https://") || link.target.starts_with("http://") {
                continue;
            }
            followed += 1;
            if let Err(problem) = follow(&page, &link.target) {
                broken.push(format!("{}: {problem}: {}", page.at(link.line), link.target));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(followed > 50, "only {followed} links were found");
}

#[test]
fn every_page_stands_in_the_table_of_contents_once() {
    let contents = Page::read(format!("{BOOK}/SUMMARY.md"));
    let mut listed: Vec<PathBuf> = contents.links.iter().map(|link| Path::new(BOOK).join(&link.target)).collect();
    listed.sort();
    let written: Vec<PathBuf> = pages().into_iter().map(|page| page.path).collect();
    let written: Vec<PathBuf> =
        written.into_iter().filter(|path| path.starts_with(BOOK) && !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, written);
}

#[test]
fn headings_of_a_page_differ() {
    for page in pages() {
        let different: BTreeSet<&String> = page.headings.iter().collect();
        assert_eq!(different.len(), page.headings.len(), "{}: {:?}", page.path.display(), page.headings);
    }
}

#[test]
fn every_picture_is_shown() {
    let shown: BTreeSet<PathBuf> = pages()
        .iter()
        .flat_map(|page| page.links.iter().map(|link| plain(&page.folder().join(&link.target))))
        .collect();
    for entry in std::fs::read_dir(format!("{BOOK}/images")).expect("the pictures") {
        let path = entry.expect("the pictures").path();
        assert!(shown.contains(&path), "{} is on no page", path.display());
    }
}

#[test]
fn every_file_that_contributors_are_told_of_exists() {
    let mut missing = Vec::new();
    for (page, folder) in [("CONTRIBUTING.md", ""), ("src/lib.rs", "src")] {
        let text = std::fs::read_to_string(page).expect("the page");
        let spans = text.split('`').skip(1).step_by(2);
        let files: Vec<&str> = spans.filter(|span| is_file(span)).collect();
        assert!(files.len() > 10, "{page}: only {files:?}");
        let exists = |file: &&str| Path::new(file).exists() || Path::new(folder).join(file).exists();
        missing.extend(files.into_iter().filter(|file| !exists(file)).map(|file| format!("{page}: {file}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_defence_in_the_threat_model_names_tests_that_exist() {
    let page = format!("{BOOK}/threat-model.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let mut wrong = Vec::new();
    let mut held = 0;
    for (number, line) in text.lines().enumerate() {
        let files: Vec<&str> = line.split('`').skip(1).step_by(2).filter(|span| is_file(span)).collect();
        let is_attack = line.starts_with("| ") && !line.starts_with("| attack |") && !line.starts_with("| --- |");
        held += usize::from(is_attack);
        if is_attack && files.is_empty() {
            wrong.push(format!("{page}:{}: names no test", number + 1));
        }
        let without = files.into_iter().filter(|file| !has_tests(file));
        wrong.extend(without.map(|file| format!("{page}:{}: no file with tests: {file}", number + 1)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(held > 40, "only {held} attacks were found");
}

/// Whether this is a Rust file below `tests` with tests in it.
fn has_tests(file: &str) -> bool {
    let is_source =
        file.starts_with("tests/") && Path::new(file).extension().is_some_and(|extension| extension == "rs");
    is_source
        && std::fs::read_to_string(file).is_ok_and(|text| text.contains("#[test]") || text.contains("#[tokio::test"))
}

/// Whether what stands in backticks is the path of a file or folder, and not a command or a pattern.
fn is_file(span: &str) -> bool {
    let is_path =
        span.contains('/') && span.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    is_path && !span.starts_with('/')
}

#[test]
fn the_readme_is_short() {
    let readme = std::fs::read_to_string("README.md").expect("the README");
    assert!(readme.lines().count() <= 150, "{} lines: the rest belongs into the book", readme.lines().count());
}

fn follow(page: &Page, target: &str) -> Result<(), String> {
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let path = if file.is_empty() { page.path.clone() } else { plain(&page.folder().join(file)) };
    if !path.exists() {
        return Err(format!("{} does not exist", path.display()));
    }
    // The book is built from its own folder: what lies beside it is not in it.
    if page.path.starts_with(BOOK) && !path.starts_with(BOOK) {
        return Err("this leads out of the book".to_owned());
    }
    let Some(heading) = heading else { return Ok(()) };
    let there = Page::read(path).headings.iter().any(|found| found == heading);
    if there { Ok(()) } else { Err("no such heading".to_owned()) }
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}
