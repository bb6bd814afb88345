//! A page of Markdown: its headings, its links, and its blocks of code.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the pages of the book are.
pub(crate) const BOOK: &str = "docs/src";

#[derive(Debug)]
pub(crate) struct Page {
    /// Below the root of the repository.
    pub(crate) path: PathBuf,
    /// The identifier of each heading: what stands behind `#` in a link to it.
    pub(crate) headings: Vec<String>,
    pub(crate) links: Vec<Link>,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

/// A fenced block. Behind the fence stand its language and, after a space, a mark: `yaml route`.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) mark: String,
    pub(crate) text: String,
}

/// The pages at the root of the repository.
const AT_THE_ROOT: [&str; 3] = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];

/// The pages at the root of the repository, and every page of the book.
pub(crate) fn pages() -> Vec<Page> {
    let mut files: Vec<PathBuf> = AT_THE_ROOT.iter().map(PathBuf::from).collect();
    let mut folders = vec![PathBuf::from(BOOK)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the book") {
            let path = entry.expect("a folder of the book").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.into_iter().map(Page::read).collect()
}

impl Page {
    pub(crate) fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut page = Self { path, headings: Vec::new(), links: Vec::new(), blocks: Vec::new() };
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let bare = line.trim_start();
            if let Some(info) = bare.strip_prefix("```") {
                let indent = line.len() - bare.len();
                let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
                let inside: Vec<&str> = inside.map(|line| line.get(indent..).unwrap_or_default()).collect();
                let block = page.block(number + 1, info, &inside);
                page.blocks.push(block);
                continue;
            }
            if let Some(heading) = line.strip_prefix('#') {
                page.headings.push(identifier(heading.trim_start_matches('#').trim()));
            }
            page.links.extend(targets(line).map(|target| Link { line: number + 1, target }));
        }
        page
    }

    fn block(&self, line: usize, info: &str, inside: &[&str]) -> Block {
        let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
        let text = inside.iter().map(|line| self.included(line) + "\n").collect();
        Block { line, language: language.to_owned(), mark: mark.to_owned(), text }
    }

    /// A line, or the file that it includes.
    fn included(&self, line: &str) -> String {
        let Some(name) = line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) else {
            return line.to_owned();
        };
        let file = self.folder().join(name);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).trim_end().to_owned()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().expect("a file stands in a folder")
    }

    /// A line of this page, for messages.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// What mdBook makes of a heading: letters, digits, `-` and `_`, in small letters, with `-` for a space.
fn identifier(heading: &str) -> String {
    let kept = |letter: char| match letter {
        letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter.to_ascii_lowercase()),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.chars().filter_map(kept).collect()
}

/// The targets of the links and pictures of a line.
fn targets(line: &str) -> impl Iterator<Item = String> {
    // What stands in backticks is no link.
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let ends = outside.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(target, _)| target.to_owned()).collect::<Vec<_>>().into_iter()
}
