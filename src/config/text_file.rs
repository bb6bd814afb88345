//! Reads text files: configurations, lists, pages and tokens.

use std::path::Path;

use crate::files;

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

/// The file name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

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

/// In MiB. People write less.
const MAX_TEXT_MEBIBYTES: u64 = 16;

/// In MiB. About fifty million addresses.
const MAX_LIST_MEBIBYTES: u64 = 1024;

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
