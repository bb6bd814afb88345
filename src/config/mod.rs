//! The configuration: from text to settings in which no error is left.
//!
//! Text is read to a tree that knows its places ([`yaml`]), the tree to what was written ([`raw`]), and that to
//! [`Settings`] ([`compile`]). Each step collects every mistake it finds, so that a person sees them all at once.

mod advice;
pub mod compile;
pub mod diagnostic;
pub mod inline;
pub mod raw;
pub mod schema;
mod secret;
pub mod source;
pub mod yaml;

use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::path::Path;
use std::path::PathBuf;

use self::diagnostic::Mistakes;
use self::raw::Document;
use self::raw::Raw;
use self::source::Environment;
use self::source::Source;
use self::source::Unreadable;
use crate::admin::AdminSettings;
use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::files::WatchedFile;
use crate::gateway;
use crate::listen;
use crate::record::LogSettings;
use crate::record::audit::AuditSettings;
use crate::record::notify::NotifySettings;
use crate::store;
use crate::upstream;

pub use self::diagnostic::Diagnostic;
pub use self::diagnostic::Severity;
pub use self::diagnostic::render;
pub use self::inline::inline;
pub use self::schema::schema;

/// A configuration, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: Vec<listen::ListenerConfig>,
    pub admin: Option<AdminSettings>,
    pub clients: TrustedProxies,
    pub store: store::Settings,
    /// By `UpstreamId`.
    pub upstreams: Vec<upstream::Settings>,
    pub policy: Policy,
    pub notify: NotifySettings,
    pub audit: AuditSettings,
    pub log: LogSettings,
    pub connections: listen::Settings,
    pub requests: gateway::GatewaySettings,
    /// Every file that was read, the configuration first: a change of any means reading anew.
    pub files: Vec<WatchedFile>,
    /// Every file that is to be written, with where it is named.
    pub outputs: Vec<Output>,
    pub warnings: Warnings,
}

/// What is no mistake, and probably not meant, and the text it was found in: of the same text it is said once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Warnings {
    /// A hash of it.
    text: u64,
    pub found: Vec<Diagnostic>,
}

impl Warnings {
    fn new<'t>(found: Vec<Diagnostic>, texts: impl Iterator<Item = &'t str>) -> Self {
        let mut hasher = DefaultHasher::new();
        texts.for_each(|text| text.hash(&mut hasher));
        Self { text: hasher.finish(), found }
    }
}

/// A file that is to be written. Whether that is possible shows when it is opened.
#[derive(Clone, Debug)]
pub struct Output {
    path: PathBuf,
    /// Where it is named.
    place: Diagnostic,
}

impl Output {
    fn new(path: &Path, place: Diagnostic) -> Self {
        Self { path: path.to_owned(), place }
    }

    /// The mistake that one of `outputs` is, now that it could not be opened.
    pub fn unwritable(outputs: &[Self], path: &Path, message: &str) -> Diagnostic {
        let named = outputs.iter().find(|output| output.path == path).map(|output| output.place.clone());
        let mistake = named.unwrap_or_else(|| Diagnostic::new(path, 1, 1, ""));
        let help = "check the path, who may write there, and that a FIFO has its reader";
        Diagnostic { message: message.to_owned(), ..mistake }.help(help)
    }
}

/// Reads a configuration file, or standard input where it is `-`, and every file it names, with this process's
/// environment. All mistakes at once.
pub fn load(file: &Path) -> Result<Settings, Vec<Diagnostic>> {
    load_with(file, &|name| std::env::var(name).ok())
}

/// As [`load`], with an environment of the caller's own.
pub fn load_with(file: &Path, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    let is_file = file.as_os_str() != source::STANDARD_INPUT;
    let watched = if is_file { WatchedFile::as_it_is(file) } else { WatchedFile::unseen(file) };
    let text = if is_file { source::read_text(file) } else { source::read_standard_input() };
    let text = match text {
        Ok(text) => text,
        Err(Unreadable::NotUtf8 { line, column }) => {
            let message = Unreadable::NotUtf8 { line, column }.to_string();
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

/// Checks a text as if it stood in `file`, next to which the files that it names are looked for.
pub fn read(file: &Path, text: String, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    read_from(WatchedFile::unseen(file), text, environment)
}

fn read_from(watched: WatchedFile, text: String, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    let file = &*watched.path;
    let mut mistakes = Mistakes::default();
    // Columns are counted without the mark that some editors put first.
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
    compile::compile(document.as_ref(), base, vec![watched], mistakes)
}

fn empty(file: &Path) -> Diagnostic {
    Diagnostic::new(file, 1, 1, "the file holds no configuration")
        .help("the smallest one is two lines: `listen: 0.0.0.0:8080` and `upstream: http://127.0.0.1:8000`")
}

#[cfg(test)]
mod tests;
