//! Reads a configuration: a file, standard input, or a text.

use std::path::Path;

use super::compile;
use super::diagnostic::Diagnostic;
use super::environment::Environment;
use super::mistakes::Mistakes;
use super::raw::Document;
use super::raw::RawValue;
use super::settings::Settings;
use super::source::Source;
use super::text_file;
use super::text_file::UnreadableFile;
use super::yaml;
use crate::files::WatchedFile;

/// Reads a configuration file, or standard input for `-`, and every file it names, with this process's environment.
/// Returns all mistakes at once.
pub fn load(file: &Path) -> Result<Settings, Vec<Diagnostic>> {
    load_with(file, &|name| std::env::var(name).ok())
}

/// As [`load`], with another environment.
pub fn load_with(file: &Path, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    let is_file = file.as_os_str() != text_file::STANDARD_INPUT;
    let watched = if is_file { WatchedFile::as_it_is(file) } else { WatchedFile::unseen(file) };
    let text = if is_file { text_file::read_text(file) } else { text_file::read_standard_input() };
    let text = match text {
        Ok(text) => text,
        Err(UnreadableFile::NotUtf8 { line, column }) => {
            let message = UnreadableFile::NotUtf8 { line, column }.to_string();
            return Err(vec![Diagnostic::new(file, line, column, message).help("save it as UTF-8")]);
        }
        Err(error) => {
            let message = format!("cannot read the configuration: {error}");
            return Err(vec![
                Diagnostic::new(file, 1, 1, message).help("name the file: `-c FILE`, or `-c -` for standard input"),
            ]);
        }
    };
    read_from(watched, text, environment)
}

/// Checks a text as if it were the content of `file`. The files that it names are relative to `file`.
pub fn read(file: &Path, text: String, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    read_from(WatchedFile::unseen(file), text, environment)
}

fn read_from(watched: WatchedFile, text: String, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    let file = &*watched.path;
    let mut mistakes = Mistakes::default();
    // Columns do not count the byte order mark that some editors write.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let number = mistakes.source(Source::new(file, text.clone()));
    let Some(root) = yaml::parse(&text, number, environment, &mut mistakes) else {
        if mistakes.is_empty() {
            mistakes.push(empty(file));
        }
        return Err(mistakes.into_sorted());
    };
    if root.content == yaml::Content::Nothing {
        mistakes.push(empty(file));
        return Err(mistakes.into_sorted());
    }
    let document = Document::read(&root, &mut mistakes);
    let base = file.parent().unwrap_or(Path::new("")).to_owned();
    compile::compile(document.as_ref(), &root, base, vec![watched], mistakes)
}

fn empty(file: &Path) -> Diagnostic {
    Diagnostic::new(file, 1, 1, "the file holds no configuration")
        .help("the smallest one is two lines: `listen: 0.0.0.0:8080` and `upstream: http://127.0.0.1:8000`")
}
