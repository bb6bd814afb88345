//! The texts that mistakes point into: files and flags.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::words::files;

/// A range of a source, within one line.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct SourceRange {
    /// The number of the source.
    pub source: u16,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// In characters; at least 1 when shown.
    pub length: u32,
}

/// A text, and the file name or flag it comes from.
#[derive(Clone, Debug)]
pub struct SourceText {
    name: PathBuf,
    text: String,
    line_starts: Vec<usize>,
}

impl SourceText {
    pub fn new(name: impl Into<PathBuf>, text: String) -> Self {
        let line_starts =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    pub fn name(&self) -> &Path {
        &self.name
    }

    /// A line without its end; `number` counts from 1.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.line_starts.get(number.checked_sub(1)?)?;
        let end = self.line_starts.get(number).map_or(self.text.len(), |next| next - 1);
        Some(self.text.get(start..end)?.trim_end_matches('\r'))
    }
}

impl SourceText {
    /// The top-level key that a line belongs to.
    pub fn section(&self, number: usize) -> Option<&str> {
        let mut lines = (1..=number).rev().filter_map(|number| self.line(number));
        let key = lines.find(|line| line.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '"' | '\'')))?;
        Some(key.split(':').next().unwrap_or(key).trim().trim_matches(['"', '\'']))
    }
}

// Reads text files: configurations, lists, pages and tokens.

/// The file name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// In MiB. People write less.
const MAX_TEXT_MEBIBYTES: u64 = 16;

/// In MiB. About fifty million addresses.
const MAX_LIST_MEBIBYTES: u64 = 1024;

/// Why a file cannot be read as text.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableFile {
    #[error("{}", files::describe(.0))]
    Io(#[from] std::io::Error),
    #[error("the file is larger than {max_mebibytes} MiB")]
    TooLarge { max_mebibytes: u64 },
    #[error("this is not UTF-8 text")]
    NotUtf8 {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
}

/// Reads a file that people write: a configuration, a page, a token.
pub fn read_text(file: &Path) -> Result<String, UnreadableFile> {
    text_of(files::read(file, MAX_TEXT_MEBIBYTES << 20)?, MAX_TEXT_MEBIBYTES)
}

/// Reads a file that programs may write: a list.
pub fn read_list(file: &Path) -> Result<String, UnreadableFile> {
    text_of(files::read(file, MAX_LIST_MEBIBYTES << 20)?, MAX_LIST_MEBIBYTES)
}

/// Reads standard input to its end, once.
pub fn read_standard_input() -> Result<String, UnreadableFile> {
    text_of(files::read_to_end(std::io::stdin().lock(), 0, MAX_TEXT_MEBIBYTES << 20)?, MAX_TEXT_MEBIBYTES)
}

fn text_of(bytes: Option<Vec<u8>>, max_mebibytes: u64) -> Result<String, UnreadableFile> {
    let bytes = bytes.ok_or(UnreadableFile::TooLarge { max_mebibytes })?;
    String::from_utf8(bytes).map_err(|error| UnreadableFile::not_utf8(&error))
}

impl UnreadableFile {
    /// Finds the first byte that is not UTF-8.
    fn not_utf8(error: &std::string::FromUtf8Error) -> Self {
        let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line_start = good.rfind('\n').map_or(0, |at| at + 1);
        Self::NotUtf8 { line: good.matches('\n').count() + 1, column: good[line_start..].chars().count() + 1 }
    }
}

// Puts the environment's values in place of `${NAME}`.

/// Looks up the value of a variable; `None`: not set.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Why a `${` cannot be replaced.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidVariable {
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    #[error("`${{` is not closed by a `}}`")]
    Unclosed,
    #[error("`{0}` is not the name of an environment variable")]
    InvalidName(String),
}

/// Puts the environment's values in place of `${NAME}` and `${NAME:-default}`. The default also replaces an empty value.
/// `$${` is a literal `${`. A value that was put in place is not searched for `${` again.
pub fn substitute<'t>(text: &'t str, environment: Environment<'_>) -> Result<Cow<'t, str>, InvalidVariable> {
    if !text.contains("${") {
        return Ok(Cow::Borrowed(text));
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            result.push_str(&rest[..at - 1]);
            result.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        result.push_str(&rest[..at]);
        let (inside, after) = rest[at + 2..].split_once('}').ok_or(InvalidVariable::Unclosed)?;
        result.push_str(&resolve(inside, environment)?);
        rest = after;
    }
    result.push_str(rest);
    Ok(Cow::Owned(result))
}

fn resolve(inside: &str, environment: Environment<'_>) -> Result<String, InvalidVariable> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !is_name {
        return Err(InvalidVariable::InvalidName(name.to_owned()));
    }
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(InvalidVariable::Unset(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Result<&str, InvalidVariable>) {
        let environment = |name: &str| match name {
            "PORT" => Some("8080".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${PORT}".to_owned()),
            _ => None,
        };
        assert_eq!(substitute(text, &environment).as_deref(), expected.as_ref().copied());
    }

    #[test]
    fn names_are_replaced_by_their_values() {
        check("no names", &Ok("no names"));
        check("0.0.0.0:${PORT}", &Ok("0.0.0.0:8080"));
        check("${PORT}${PORT}", &Ok("80808080"));
        check("${GONE:-7}", &Ok("7"));
        check("${GONE:-}", &Ok(""));
        check("${PORT:-7}", &Ok("8080"));
        check("${EMPTY:-7}", &Ok("7"));
        check("a${EMPTY}b", &Ok("ab"));
        check("$PORT $ {PORT} $", &Ok("$PORT $ {PORT} $"));
    }

    #[test]
    fn a_doubled_dollar_is_a_dollar() {
        check("$${PORT}", &Ok("${PORT}"));
        check("$${GONE", &Ok("${GONE"));
        check("é$${a}${PORT}", &Ok("é${a}8080"));
    }

    #[test]
    fn a_value_is_not_substituted_again() {
        check("${NESTED}", &Ok("${PORT}"));
    }

    #[test]
    fn an_invalid_variable_is_an_error() {
        check("${GONE}", &Err(InvalidVariable::Unset("GONE".to_owned())));
        check("${PORT", &Err(InvalidVariable::Unclosed));
        check("${}", &Err(InvalidVariable::InvalidName(String::new())));
        check("${a b}", &Err(InvalidVariable::InvalidName("a b".to_owned())));
        check("${1A}", &Err(InvalidVariable::InvalidName("1A".to_owned())));
    }

    #[test]
    fn lines_are_found_by_number() {
        let source = SourceText::new("f", "a\r\nbé\n\nc".to_owned());
        let lines: Vec<_> = (0..6).map(|number| source.line(number)).collect();
        assert_eq!(lines, [None, Some("a"), Some("bé"), Some(""), Some("c"), None]);
    }
}
