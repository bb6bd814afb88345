//! Reads a configuration: a file, standard input, or a text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::diagnostic::Diagnostic;
use super::raw::{Document, RawValue};
use super::source::SourceText;
use super::{compile, yaml};
use crate::admin::AdminSettings;
use crate::config::diagnostic::Mistakes;
use crate::config::shown::ShownConfig;
use crate::config::source;
use crate::config::source::{Environment, UnreadableFile};
use crate::record::audit::AuditSettings;
use crate::record::notify::NotifySettings;
use crate::record::spans::TracingSettings;
use crate::record::{LogSettings, RouteSeries};
use crate::rules::client::TrustedProxies;
use crate::rules::decision::Policy;
use crate::wire::crowdsec::ListSource;
use crate::words::files::WatchedFile;
use crate::{gateway, listen, store, upstream};

/// Reads a configuration file, or standard input for `-`, and every file it names, with this process's environment.
/// Returns all mistakes at once.
pub fn load(file: &Path) -> Result<Settings, Vec<Diagnostic>> {
    load_with(file, &|name| std::env::var(name).ok())
}

/// Like [`load`], with another environment.
pub fn load_with(file: &Path, environment: Environment<'_>) -> Result<Settings, Vec<Diagnostic>> {
    let is_file = file.as_os_str() != source::STANDARD_INPUT;
    let watched = if is_file { WatchedFile::as_it_is(file) } else { WatchedFile::unseen(file) };
    let text = if is_file { source::read_text(file) } else { source::read_standard_input() };
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
    let number = mistakes.source(SourceText::new(file, text.clone()));
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

// The JSON Schema of the configuration, for editors. It is made from the definitions that also read the configuration.

/// The schema, by draft 2020-12.
pub fn schema() -> Value {
    let mut definitions = BTreeMap::new();
    let root = Document::schema(&mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "portcullis",
        "$ref": root["$ref"],
        "$defs": definitions,
    })
}

// A configuration without errors, as the rest of the crate uses it.

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: Vec<listen::ListenerConfig>,
    pub admin: Option<AdminSettings>,
    pub clients: TrustedProxies,
    pub store: store::StoreSettings,
    /// By `UpstreamId`.
    pub upstreams: Vec<upstream::UpstreamSettings>,
    pub policy: Policy,
    pub notify: NotifySettings,
    /// The lists that follow a source, by their number.
    pub followed: Vec<ListSource>,
    pub audit: AuditSettings,
    pub log: LogSettings,
    pub route_series: RouteSeries,
    pub connections: listen::ConnectionSettings,
    pub requests: gateway::GatewaySettings,
    /// `None`: no request is traced.
    pub tracing: Option<TracingSettings>,
    /// `None`: no token is verified.
    pub tokens: Option<gateway::TokenSettings>,
    /// Every file that was read, the configuration first. A change of any of them causes a reload.
    pub files: Vec<WatchedFile>,
    /// Every file that is to be written, with the place that names it.
    pub outputs: Vec<OutputFile>,
    pub warnings: Vec<Diagnostic>,
    /// The configuration that was read, for operators.
    pub shown: ShownConfig,
}

/// A file that is to be written. Whether that is possible shows when it is opened.
#[derive(Clone, Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// The place that names it.
    place: Diagnostic,
}

impl OutputFile {
    pub(super) fn new(path: &Path, place: Diagnostic) -> Self {
        Self { path: path.to_owned(), place }
    }

    /// The mistake of one of `outputs` that could not be opened.
    pub fn unwritable(outputs: &[Self], path: &Path, message: &str) -> Diagnostic {
        let named = outputs.iter().find(|output| output.path == path).map(|output| output.place.clone());
        let mistake = named.unwrap_or_else(|| Diagnostic::new(path, 1, 1, ""));
        let help = "check the path, who may write there, and that a FIFO has its reader";
        Diagnostic { message: message.to_owned(), ..mistake }.help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_a_definition_and_every_key_a_description() {
        let schema = schema();
        let mut open = vec![&schema];
        while let Some(value) = open.pop() {
            if let Some(reference) = value["$ref"].as_str() {
                let name = reference.trim_start_matches("#/$defs/");
                assert!(schema["$defs"][name].is_object(), "{reference}");
            }
            for (key, property) in value["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].as_str().is_some_and(|text| text.len() > 10), "{key}");
            }
            open.extend(value.as_object().into_iter().flat_map(|object| object.values()));
            open.extend(value.as_array().into_iter().flatten());
        }
    }

    #[test]
    fn keys_refer_to_the_schema_of_their_value() {
        let schema = schema();
        assert_eq!(schema["$defs"]["Listener"]["properties"]["tls"]["$ref"], "#/$defs/ListenerTls");
        assert!(schema["$defs"]["Limit"]["properties"]["distinct"].is_object());
    }
}
