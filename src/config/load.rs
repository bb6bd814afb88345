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
    let root = yaml::parse(&text, number, environment, &mut mistakes);
    if let Some(other) = OtherProgram::of(&text, root.as_ref()) {
        return Err(vec![other.told(file)]);
    }
    let Some(root) = root else {
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

// Configurations of other programs, which people give to a proxy that they take for one like theirs.

/// Another program, by what its configurations look like.
struct OtherProgram {
    name: &'static str,
    /// What a line of such a text begins with, where it is no YAML.
    lines: &'static [&'static str],
    /// Keys at the top of such a text, where it is YAML: all of them stand there.
    keys: &'static [&'static str],
    help: &'static str,
}

impl OtherProgram {
    /// The program whose configuration a text is. `None`: it is ours, though it may have mistakes, or of none that is known.
    fn of(text: &str, root: Option<&yaml::Node>) -> Option<&'static Self> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        if let Some(yaml::Node { content: yaml::Content::Map(entries), .. }) = root {
            let has = |key: &str| entries.iter().any(|(name, _)| name.text == key);
            return OTHERS.iter().find(|other| !other.keys.is_empty() && other.keys.iter().all(|key| has(key)));
        }
        let is_text = root.is_none_or(|root| matches!(root.content, yaml::Content::Scalar(_)));
        // A key of ours at the beginning of a line: the other lines are mistakes.
        if !is_text || lines().any(|line| line.starts_with("listen:") || line.starts_with("upstream:")) {
            return None;
        }
        let begins = |start: &&str| lines().any(|line| line == start.trim_end() || line.starts_with(*start));
        OTHERS.iter().find(|other| other.lines.iter().any(&begins))
    }

    fn told(&self, file: &Path) -> Diagnostic {
        let message = format!("this is a configuration of {}, and not of portcullis", self.name);
        Diagnostic::new(file, 1, 1, message).help(self.help)
    }
}

/// The first that fits.
const OTHERS: [OtherProgram; 12] = [
    OtherProgram { name: "a program that reads TOML", lines: &["listen =", "upstream ="], keys: &[], help: SMALLEST },
    OtherProgram {
        name: "HAProxy",
        lines: &["frontend ", "backend ", "defaults ", "global "],
        keys: &[],
        help: SMALLEST,
    },
    OtherProgram {
        name: "Caddy",
        lines: &["reverse_proxy ", "php_fastcgi ", "handle_path "],
        keys: &[],
        help: SMALLEST,
    },
    OtherProgram {
        name: "nginx",
        lines: &[
            "http {",
            "server {",
            "upstream ",
            "location ",
            "events {",
            "proxy_pass ",
            "worker_processes ",
            "listen ",
            "server_name ",
            "limit_req_zone ",
        ],
        keys: &[],
        help: SMALLEST,
    },
    OtherProgram { name: "Apache", lines: &["<VirtualHost", "ProxyPass ", "<Location"], keys: &[], help: SMALLEST },
    OtherProgram { name: "fail2ban", lines: &["[DEFAULT]", "[sshd]", "maxretry "], keys: &[], help: SMALLEST },
    OtherProgram {
        name: "Envoy's rate limit service",
        lines: &[],
        keys: &["domain", "descriptors"],
        help: "`portcullis convert ratelimit FILE` prints the configuration that does the same; the smallest one is two lines: `listen: 0.0.0.0:8080` and `upstream: http://127.0.0.1:8000`",
    },
    OtherProgram { name: "Envoy", lines: &[], keys: &["static_resources"], help: SMALLEST },
    OtherProgram { name: "Traefik", lines: &[], keys: &["http"], help: SMALLEST },
    OtherProgram { name: "Traefik", lines: &[], keys: &["labels"], help: SMALLEST },
    OtherProgram { name: "Docker Compose", lines: &[], keys: &["services"], help: SMALLEST },
    OtherProgram { name: "Kubernetes", lines: &[], keys: &["apiVersion", "kind"], help: SMALLEST },
];

const SMALLEST: &str = "write one anew: the smallest is two lines, `listen: 0.0.0.0:8080` and `upstream: http://127.0.0.1:8000`; `portcullis recipe` prints whole ones";

/// What to write for a key or a directive of another program. `None`: it is of none that is known.
pub(super) fn advice_of_others(word: &str, known: &[&str]) -> Option<&'static str> {
    let is_here = |beside: &str| beside.is_empty() || known.contains(&beside);
    OF_OTHERS.iter().find(|(of_others, beside, _)| *of_others == word && is_here(beside)).map(|(.., help)| *help)
}

/// What to write for a directive of another program that stands on a line of its own. `None`: it is of none that is known.
pub(super) fn advice_of_directive(word: &str) -> Option<&'static str> {
    OF_OTHERS.iter().find(|(of_others, beside, _)| *of_others == word && beside.is_empty()).map(|(.., help)| *help)
}

/// Keys and directives of other programs: the word, a key that the section must have where the help is for such a section
/// alone, and what to write.
const OF_OTHERS: [(&str, &str, &str); 67] = [
    // nginx
    ("limit_req_zone", "", LIMIT),
    ("limit_req", "", LIMIT),
    (
        "limit_rate",
        "",
        "answers are not slowed down: remove it, and bound requests: `limits: [{key: client_ip, rate: 10/second}]`",
    ),
    ("limit_conn_zone", "", CONCURRENT),
    ("limit_conn", "", CONCURRENT),
    ("include", "", "write what it includes into this file, and remove it"),
    ("client_max_body_size", "", "write `server: {max_body: 10MiB}` at the top level"),
    ("large_client_header_buffers", "", "write `server: {max_header_bytes: 64KiB}` at the top level"),
    ("keepalive_timeout", "", "write `server: {timeouts: {keepalive: 75s}}` at the top level"),
    ("client_header_timeout", "", "write `server: {timeouts: {header: 10s}}` at the top level"),
    ("client_body_timeout", "", "write `server: {timeouts: {body_idle: 30s}}` at the top level"),
    (
        "proxy_read_timeout",
        "",
        "write `upstreams: {app: {servers: [http://127.0.0.1:8000], timeouts: {response: 60s}}}` at the top level",
    ),
    (
        "proxy_connect_timeout",
        "",
        "write `upstreams: {app: {servers: [http://127.0.0.1:8000], timeouts: {connect: 2s}}}` at the top level",
    ),
    ("worker_connections", "", "write `server: {max_connections: 1024}` at the top level"),
    ("events", "rate", IN_RATE),
    ("window", "rate", IN_RATE),
    ("zone", "rate", "counters are kept by the name of the limit: write `name: login`"),
    ("nodelay", "rate", "requests beyond the rate are denied at once: remove it"),
    ("worker_processes", "", "the gateway has a thread for each core: remove it"),
    ("events", "", "the gateway has a thread for each core: remove it"),
    ("user", "", "the service manager sets the user of the process: remove it"),
    ("pid", "", "the service manager knows the process: remove it"),
    ("proxy_set_header", "", FORWARDED),
    (
        "proxy_http_version",
        "",
        "the gateway speaks HTTP/1.1 to applications, with `http2: true` in an upstream HTTP/2: remove it",
    ),
    ("proxy_buffering", "", "bodies stream in both directions: remove it"),
    ("add_header", "", "answers of the application pass as they are: remove it"),
    ("set_real_ip_from", "", PROXIES),
    ("real_ip_header", "", PROXIES),
    ("error_log", "", "it is standard error: write `log: {level: warn}` at the top level"),
    ("access_log", "", "it is standard output: write `log: {requests: true}` at the top level"),
    ("log_format", "", "write `log: {format: json}` at the top level"),
    (
        "return",
        "",
        "a route forwards requests; to refuse clients write `access: {deny: [NAME]}`, with a list under `lists`; or remove it",
    ),
    ("rewrite", "", PATH_AS_IT_CAME),
    ("strip_prefix", "match", PATH_AS_IT_CAME),
    ("redirect", "match", "a route forwards requests, and the application redirects them: remove it"),
    ("methods", "match", "write it into the `match` of the route, such as `{methods: [POST], path: /login}`"),
    ("redis", "store", "write `store: {redis: {url: redis://127.0.0.1:6379/0}}` at the top level"),
    ("type", "redis", REDIS),
    ("host", "redis", REDIS),
    ("port", "redis", REDIS),
    ("url", "redis", REDIS),
    ("output", "level", "it is standard error, and for requests standard output: remove it"),
    ("status", "challenge", "write `deny: {status: 429}`"),
    (
        "tls",
        "listen",
        "write `listen: [{address: 0.0.0.0:8443, tls: {certificates: [{cert: tls/site.pem, key: tls/site.key}]}}]` at the top level",
    ),
    (
        "root",
        "",
        "files are served by a web server: remove it, and name that server: `upstream: http://127.0.0.1:8000`",
    ),
    (
        "allow",
        "",
        "lists have names: define `lists: {office: {addresses: [198.51.100.0/24]}}`, and `access: {allow: [office]}` at the top level",
    ),
    ("proxy_pass", "", "write `upstream: http://127.0.0.1:8000`"),
    ("server_name", "", "write it into the `match` of a route, such as `{host: example.com, path: /*}`"),
    ("ssl_certificate", "tls", CERTIFICATES_OF_LISTENER),
    ("ssl_certificate_key", "tls", CERTIFICATES_OF_LISTENER),
    ("cert", "certificates", CERTIFICATES),
    ("key", "certificates", CERTIFICATES),
    ("port", "address", "it stands behind the address: `address: 0.0.0.0:8080`"),
    // Traefik, Caddy, Envoy
    ("rate_limit", "", LIMIT),
    ("rateLimit", "", LIMIT),
    ("ratelimit", "", LIMIT),
    ("inFlightReq", "", CONCURRENT),
    ("middlewares", "", LIMIT),
    ("reverse_proxy", "", "write `upstream: http://127.0.0.1:8000`"),
    ("requests_per_unit", "rate", "write `rate: 5/minute`"),
    ("average", "rate", "write `rate: 5/minute`"),
    ("period", "rate", IN_RATE),
    // fail2ban
    ("maxretry", "rate", "write `rate: 5 per 10 minutes`"),
    ("findtime", "rate", "it is a part of the rate: `rate: 5 per 10 minutes`"),
    ("bantime", "rate", "write `then: {ban: 1h}`"),
    (
        "ignoreip",
        "rate",
        "name a list whose members the limit does not meet: `unless: [NAME]`, with the list under `lists`",
    ),
    // HAProxy
    ("maxconn", "", "write `server: {max_connections: 1024}` at the top level"),
];

const IN_RATE: &str = "it is a part of the rate: `rate: 5/minute`";
const PATH_AS_IT_CAME: &str = "requests go to the application with the path as it came: remove it";
const REDIS: &str = "write `redis: {url: redis://127.0.0.1:6379/0}`";
const LIMIT: &str = "write `limits: [{key: client_ip, rate: 10/second}]`";
const CONCURRENT: &str = "write `limits: [{key: client_ip, concurrent: 20}]`";
const FORWARDED: &str = "the application gets the client's `Host` and `X-Forwarded-For` without it: remove it";
const PROXIES: &str = "write `client_ip: {trusted_proxies: [10.1.2.0/24], header: x-forwarded-for}` at the top level";
const CERTIFICATES: &str = "write `certificates: [{cert: tls/site.pem, key: tls/site.key}]`";
const CERTIFICATES_OF_LISTENER: &str = "write `tls: {certificates: [{cert: tls/site.pem, key: tls/site.key}]}`";

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
    /// Every address to listen on, with the place that names it.
    pub addresses: Vec<NamedAddress>,
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

/// An address to listen on, of requests or of the admin API.
#[derive(Clone, Debug)]
pub struct NamedAddress {
    address: listen::ListenAddress,
    /// The place that names it.
    place: Diagnostic,
}

impl NamedAddress {
    pub(super) fn new(address: listen::ListenAddress, place: Diagnostic) -> Self {
        Self { address, place }
    }

    /// The mistake of one of `addresses` that cannot be listened on.
    pub fn unusable(addresses: &[Self], address: &listen::ListenAddress, message: &str) -> Diagnostic {
        let named = addresses.iter().find(|named| named.address == *address).map(|named| named.place.clone());
        let mistake = named.unwrap_or_else(|| Diagnostic::new("", 1, 1, ""));
        Diagnostic { message: message.to_owned(), ..mistake }
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
            // Rules name the keys that they are about, each of which is described in its section.
            let is_rule = value["additionalProperties"] == true;
            for (key, property) in value["properties"].as_object().into_iter().flatten().filter(|_| !is_rule) {
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
