//! Compiles a document, section by section.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::limits::Limits;
use super::routes::RouteContext;
use super::store;
use super::upstreams::Upstreams;
use crate::config::compile::routes;
use crate::config::diagnostic::{Diagnostic, Mistakes};
use crate::config::load::{NamedAddress, OutputFile, Settings};
use crate::config::raw::{Document, Field, InvalidValue, Spanned, Text};
use crate::config::shown::ShownConfig;
use crate::config::source;
use crate::config::source::{SourceRange, UnreadableFile};
use crate::config::yaml::Node;
use crate::listen::ListenAddress;
use crate::rules::client::Prefix;
use crate::rules::decision::Policy;
use crate::rules::limit::OnFailure;
use crate::rules::route::{RouteTable, UpstreamId};
use crate::upstream::HeadBounds;
use crate::words::files;
use crate::words::files::WatchedFile;
use crate::words::units::{Size, Span};

/// Compiles a document that was read from the tree `root`; `None`: it was not a map, which has been reported.
pub fn compile(
    document: Option<&Document>,
    root: &Node,
    base: PathBuf,
    files: Vec<WatchedFile>,
    mistakes: Mistakes,
) -> Result<Settings, Vec<Diagnostic>> {
    let Some(document) = document else { return Err(mistakes.into_sorted()) };
    let mut compiler = Compiler {
        mistakes,
        base,
        files,
        outputs: Vec::new(),
        addresses: Vec::new(),
        prefix: Prefix::default(),
        on_failure: store::default_on_failure(document),
        leases: store::default_leases(document),
        has_redis: store::has_redis(document),
        proofs: Proofs { sessions: routes::are_learned(document), jwt: !document.jwt.is_absent() },
        totals: Totals::default(),
        unread: [
            (is_unread(&document.lists), "lists"),
            (is_unread(&document.upstreams), "upstreams"),
            (is_unread(&document.notify), "notify"),
        ]
        .into_iter()
        .filter_map(|(is_unread, section)| is_unread.then_some(section))
        .collect(),
    };
    let settings = compiler.settings(document, root);
    if compiler.mistakes.is_empty() { Ok(settings) } else { Err(compiler.mistakes.into_sorted()) }
}

/// Whether a section has a mistake, in its value or in the spelling of its key.
fn is_unread<T>(field: &Field<T>) -> bool {
    matches!(field, Field::Invalid)
}

// The shared state of the compilation: the mistakes found so far, and checks of simple values.

/// All regular expressions of a configuration together. A usual one takes some kilobytes.
const MAX_REGEX_BYTES: usize = 64 << 20;

/// A ban that is ten times as long each time is the longest one after six.
const MAX_BAN_STEPS: usize = 100;

/// All ladders of a configuration together: 1.6 MB.
const MAX_ALL_BAN_STEPS: usize = 100_000;

impl Compiler {
    /// Settings that are valid only if no mistake was reported: invalid values are replaced by defaults.
    fn settings(&mut self, document: &Document, root: &Node) -> Settings {
        let listen = self.listen(document);
        let admin = self.admin(document, &listen);
        let clients = self.clients(document);
        let listen = self.listeners(document, listen, &clients);
        let mut upstreams = Upstreams::default();
        self.declare_upstreams(document, &mut upstreams);
        let upstream = self.default_upstream(document, &listen, &mut upstreams);
        let lists = self.lists(document);
        let access = self.access(document, &lists);
        let deny_response = self.response(&document.deny_response).unwrap_or_default();
        let channels = self.channels(document);
        let mut limits = Limits::reserving(document);
        let everywhere = self.global_limits(document, &lists, &channels, &mut limits);
        let context = RouteContext {
            default: upstream,
            upstreams: &mut upstreams,
            lists: &lists,
            channels: &channels,
            limits: &mut limits,
            route_series: Self::route_series(document),
        };
        let routes = self.routes(document, context);
        limits.mark_names(&routes);
        self.warn(document, &routes);
        let routes = RouteTable::new(routes);
        let (lists, followed) = lists.compiled();
        let policy = Policy {
            lists,
            access,
            client_prefix: self.prefix,
            limits: limits.compiled(),
            everywhere,
            session_carriers: routes.session_carriers(),
            routes,
            upstream: upstream.unwrap_or(UpstreamId(0)),
            deny_response,
            channels: channels.names(),
        };
        let tokens = self.tokens(document);
        self.warn_of_unread_claims(document, &policy);
        let connections = self.connections(document);
        let audit = self.audit(document);
        let heads = HeadBounds::beside_requests(connections.max_header_bytes, connections.max_headers);
        Settings {
            listen,
            admin,
            clients,
            store: self.store(document),
            upstreams: upstreams.compiled(heads),
            policy,
            notify: channels.compiled(),
            followed,
            log: self.log(document, &audit),
            audit,
            route_series: Self::route_series(document),
            requests: self.requests(document, &connections),
            tracing: self.tracing(document),
            tokens,
            connections,
            files: std::mem::take(&mut self.files),
            outputs: std::mem::take(&mut self.outputs),
            addresses: std::mem::take(&mut self.addresses),
            warnings: self.mistakes.take_warnings(),
            shown: ShownConfig::of(root),
        }
    }
}

/// The state that all sections share while they are compiled.
pub(super) struct Compiler {
    pub(super) mistakes: Mistakes,
    /// The directory that paths are relative to.
    pub(super) base: PathBuf,
    /// Every file read so far.
    pub(super) files: Vec<WatchedFile>,
    /// Every file that is to be written.
    pub(super) outputs: Vec<OutputFile>,
    /// Every address to listen on.
    pub(super) addresses: Vec<NamedAddress>,
    /// The address prefix of one client, for keys that do not set their own.
    pub(super) prefix: Prefix,
    /// The default for limits that do not say what to do while Redis is down.
    pub(super) on_failure: OnFailure,
    /// Whether gateways may lease units, of limits that do not say.
    pub(super) leases: bool,
    pub(super) has_redis: bool,
    pub(super) proofs: Proofs,
    /// The total size of all regular expressions and all ladders of bans.
    pub(super) totals: Totals,
    /// The sections that could not be read: the names in them are not known.
    pub(super) unread: Vec<&'static str>,
}

/// The sizes of settings that are short in text and large in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    regex_bytes: usize,
    ban_steps: usize,
}

/// The ways in which a configuration may identify clients. An invalid setting counts as available, so that it is
/// reported only once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proofs {
    /// A route has `sessions`.
    pub(super) sessions: bool,
    /// There is a `jwt`.
    pub(super) jwt: bool,
}

impl Compiler {
    /// A number from 1, or the default.
    pub(super) fn positive(&mut self, field: &Field<Spanned<u64>>, default: u32) -> u32 {
        self.count(field).map_or(default, NonZeroU32::get)
    }

    /// A number from 1 to `u32::MAX`; `None` where it is left out or invalid.
    pub(super) fn count(&mut self, field: &Field<Spanned<u64>>) -> Option<NonZeroU32> {
        let Spanned { value, at } = field.get()?;
        match u32::try_from(*value).map(NonZeroU32::new) {
            Ok(Some(count)) => Some(count),
            Ok(None) => {
                self.mistakes.report(*at, "`0` is too small", "write `1` or more");
                None
            }
            Err(_) => {
                self.mistakes.report(*at, format!("`{value}` is too large"), format!("write at most `{}`", u32::MAX));
                None
            }
        }
    }

    /// A number as `usize`. The caller decides about zero.
    pub(super) fn size(&mut self, value: u64, at: SourceRange) -> usize {
        usize::try_from(value).unwrap_or_else(|_| {
            self.mistakes.report(at, format!("`{value}` is too large"), "write a smaller number");
            0
        })
    }

    /// A span above zero, or the default.
    pub(super) fn span(&mut self, field: &Field<Spanned<Span>>, default: Duration) -> Duration {
        let Some(Spanned { value: Span(span), at }) = field.get() else { return default };
        if span.is_zero() {
            self.mistakes.report(*at, "a duration of zero is too short", "write one such as `500ms` or `20s`");
        }
        *span
    }

    /// A regular expression, with the bytes that it takes. Once all of them take too much, none is compiled any more.
    pub(super) fn regex<T, E: Into<InvalidValue>>(
        &mut self,
        text: &Text,
        compile: impl FnOnce(&str) -> Result<T, E>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        if self.totals.regex_bytes > MAX_REGEX_BYTES {
            return None;
        }
        let compiled = self.parsed(text, compile(&text.value))?;
        self.totals.regex_bytes += bytes(&compiled);
        if self.totals.regex_bytes > MAX_REGEX_BYTES {
            let message = format!(
                "with this one, all regular expressions take more than {} when they are compiled",
                Size(MAX_REGEX_BYTES as u64)
            );
            let help =
                "repeat less: `(\\w+){1,50}` is fifty copies of all letters of the world, and `[a-z0-9_]+` is small";
            self.mistakes.report(text.at, message, help);
            return None;
        }
        Some(compiled)
    }

    /// Whether a ladder of bans with `steps` steps may be added.
    pub(super) fn takes_ban_steps(&mut self, steps: usize, at: SourceRange) -> bool {
        if steps > MAX_BAN_STEPS {
            let message = format!("a `ban` with {steps} lengths is too long");
            let help = format!(
                "write at most {MAX_BAN_STEPS} lengths, such as `[15m, 1h, 24h]`: further bans have the last one"
            );
            self.mistakes.report(at, message, help);
            return false;
        }
        let before = self.totals.ban_steps;
        self.totals.ban_steps += steps;
        if before <= MAX_ALL_BAN_STEPS && self.totals.ban_steps > MAX_ALL_BAN_STEPS {
            let message =
                format!("with this one, all `ban` of the configuration have more than {MAX_ALL_BAN_STEPS} lengths");
            self.mistakes.report(at, message, "write fewer lengths, such as `[15m, 1h, 24h]`");
        }
        self.totals.ban_steps <= MAX_ALL_BAN_STEPS
    }

    /// Parses a text.
    pub(super) fn parse<T: FromStr<Err: Into<InvalidValue>>>(&mut self, text: &Text) -> Option<T> {
        self.parsed(text, text.value.parse())
    }

    /// Reports why a text could not be parsed.
    pub(super) fn parsed<T>(&mut self, text: &Text, parsed: Result<T, impl Into<InvalidValue>>) -> Option<T> {
        parsed.map_err(|error| error.into().report(text.at, &mut self.mistakes)).ok()
    }
}

impl Compiler {
    /// Reads a file that the configuration names; `kind` is for messages.
    pub(super) fn file(&mut self, name: &Text, kind: &str) -> Option<NamedFile> {
        let path = self.base.join(&name.value);
        self.files.push(WatchedFile::as_it_is(&path));
        let content = if kind == "list" { source::read_list(&path) } else { source::read_text(&path) };
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

    /// Remembers where an address is named, for when it cannot be listened on.
    pub(super) fn note_address(&mut self, address: ListenAddress, at: SourceRange) {
        self.addresses.extend(self.mistakes.at(at).map(|place| NamedAddress::new(address, place)));
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

// The files that a configuration names.

/// The help for a path that looks like a glob.
pub(super) const ONE_FILE: &str = "name one file";

/// The path and the content of a file that the configuration names.
#[derive(Debug)]
pub(super) struct NamedFile {
    pub path: PathBuf,
    pub content: String,
}
