//! The files that a configuration names.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use super::compiler::Compiler;
use crate::config::diagnostic::Diagnostic;
use crate::config::raw::Text;
use crate::config::settings::OutputFile;
use crate::config::text_file;
use crate::config::text_file::UnreadableFile;
use crate::files;
use crate::files::WatchedFile;

/// The path and the content of a file that the configuration names.
#[derive(Debug)]
pub(super) struct NamedFile {
    pub path: PathBuf,
    pub content: String,
}

impl Compiler {
    /// Reads a file that the configuration names; `kind` is for messages.
    pub(super) fn file(&mut self, name: &Text, kind: &str) -> Option<NamedFile> {
        let path = self.base.join(&name.value);
        self.files.push(WatchedFile::as_it_is(&path));
        let content = if kind == "list" { text_file::read_list(&path) } else { text_file::read_text(&path) };
        let error = match content {
            Ok(content) => return Some(NamedFile { path, content }),
            Err(error) => error,
        };
        if let UnreadableFile::NotUtf8 { line, column } = error {
            let diagnostic = Diagnostic::new(&path, line, column, format!("{kind} file: {error}"));
            self.mistakes.push(diagnostic.help("save it as UTF-8"));
            return None;
        }
        if self.refuse_glob(name, "the path of a file", ONE_FILE) {
            return None;
        }
        let message = format!("cannot read the {kind} file `{}`: {error}", path.display());
        if Path::new(&name.value).is_relative() {
            self.mistakes.report(name.at, message, "paths are relative to the configuration file");
        } else {
            self.mistakes.report(name.at, message, "check the path and its permissions");
        }
        None
    }

    /// A file that will be written. It need not exist yet.
    pub(super) fn output(&mut self, name: &Text) -> Option<PathBuf> {
        self.writable(name, files::check_regular_or_absent)
    }

    /// A file that lines will be appended to, which may also be a FIFO or a terminal.
    pub(super) fn output_of_lines(&mut self, name: &Text) -> Option<PathBuf> {
        self.writable(name, files::check_appendable)
    }

    fn writable(&mut self, name: &Text, fits: fn(&Path) -> io::Result<()>) -> Option<PathBuf> {
        if self.refuse_glob(name, "the path of a file", ONE_FILE) {
            return None;
        }
        let path = self.base.join(&name.value);
        let is_no_name = name.value.trim().is_empty() || name.value.ends_with('/');
        let message = match fits(&path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                format!("cannot write to `{}`: {error}", name.value)
            }
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => format!("`{}` is not a file", name.value),
            _ if is_no_name => format!("`{}` is not a file", name.value),
            // Other errors are reported when the file is opened.
            _ => {
                self.outputs.extend(self.mistakes.at(name.at).map(|place| OutputFile::new(&path, place)));
                return Some(path);
            }
        };
        let help = "write the path of a file in a directory that exists; the file itself is created if missing";
        self.mistakes.report(name.at, message, help);
        None
    }
}

/// The help for a path that looks like a glob.
pub(super) const ONE_FILE: &str = "name one file";
