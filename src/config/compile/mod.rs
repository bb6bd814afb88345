//! What was written becomes settings. Every check that needs more than one value is here; all mistakes are collected.

mod client;
mod key;
mod limits;
mod listen;
mod lists;
mod matches;
mod names;
mod outcome;
mod reach;
mod record;
mod response;
mod routes;
mod rule;
mod server;
mod standing;
mod store;
mod then;
mod titles;
mod tls;
mod upstreams;
mod warnings;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::Diagnostic;
use super::Output;
use super::Settings;
use super::Warnings;
use super::diagnostic::Mistakes;
use super::raw::Document;
use super::raw::Field;
use super::raw::Spanned;
use super::raw::Text;
use super::raw::leaf::Problem;
use super::source::Place;
use crate::client::Prefix;
use crate::decision::Policy;
use crate::files::WatchedFile;
use crate::limit::OnFailure;
use crate::route::RouteTable;
use crate::route::UpstreamId;
use crate::units::Span;
use crate::upstream::HeadBounds;

use self::limits::Limits;
use self::routes::Surroundings;
use self::upstreams::Upstreams;

/// What the sections share while they are compiled.
struct Compiler {
    mistakes: Mistakes,
    /// Paths are relative to this.
    base: PathBuf,
    /// Every file read so far.
    files: Vec<WatchedFile>,
    /// Every file that is to be written.
    outputs: Vec<Output>,
    /// How wide a net one client is, where a key does not say.
    prefix: Prefix,
    /// What holds while Redis is away, where a limit does not say.
    on_failure: OnFailure,
    has_redis: bool,
}

/// Compiles a document; `None`: it was no map, which has been reported.
pub fn compile(
    document: Option<&Document>,
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
        prefix: Prefix::default(),
        on_failure: store::default_on_failure(document),
        has_redis: store::has_redis(document),
    };
    let settings = compiler.settings(document);
    if compiler.mistakes.is_empty() { Ok(settings) } else { Err(compiler.mistakes.into_sorted()) }
}

impl Compiler {
    /// Settings that are right only if no mistake was reported: what is wrong is filled in with defaults.
    fn settings(&mut self, document: &Document) -> Settings {
        let listen = self.listen(document);
        let admin = self.admin(document, &listen);
        let clients = self.clients(document);
        let listen = self.listeners(document, listen, &clients);
        let mut upstreams = Upstreams::default();
        self.declare_upstreams(document, &mut upstreams);
        let upstream = self.default_upstream(document, &mut upstreams);
        let lists = self.lists(document);
        let access = self.access(document, &lists);
        let deny_response = self.response(&document.deny_response).unwrap_or_default();
        let channels = self.channels(document);
        let mut limits = Limits::reserving(document);
        let everywhere = self.global_limits(document, &lists, &channels, &mut limits);
        let around = Surroundings {
            default: upstream,
            upstreams: &mut upstreams,
            lists: &lists,
            channels: &channels,
            limits: &mut limits,
        };
        let routes = self.routes(document, around);
        self.warn(document, &routes);
        let policy = Policy {
            lists: lists.compiled(),
            access,
            limits: limits.compiled(),
            everywhere,
            routes: RouteTable { routes },
            upstream: upstream.unwrap_or(UpstreamId(0)),
            deny_response,
            channels: channels.names(),
        };
        let connections = self.connections(document);
        let heads = HeadBounds::beside_requests(connections.max_header_bytes, connections.max_headers);
        Settings {
            listen,
            admin,
            clients,
            store: self.store(document),
            upstreams: upstreams.compiled(heads),
            policy,
            notify: channels.compiled(),
            audit: self.audit(document),
            log: Self::log(document),
            requests: self.requests(document, &connections),
            connections,
            files: std::mem::take(&mut self.files),
            outputs: std::mem::take(&mut self.outputs),
            warnings: Warnings::new(self.mistakes.take_warnings(), self.mistakes.texts()),
        }
    }

    /// A number from 1; what is left out is the default.
    fn positive(&mut self, field: &Field<Spanned<u64>>, default: u32) -> u32 {
        self.count(field).map_or(default, NonZeroU32::get)
    }

    /// A number from 1 to the largest of 32 bits; `None` where it is left out or wrong.
    fn count(&mut self, field: &Field<Spanned<u64>>) -> Option<NonZeroU32> {
        let Spanned { value, at } = field.get()?;
        match u32::try_from(*value).map(NonZeroU32::new) {
            Ok(Some(count)) => Some(count),
            Ok(None) => {
                self.mistakes.report(*at, "`0` is too small", "write 1 or more");
                None
            }
            Err(_) => {
                self.mistakes.report(*at, format!("`{value}` is too large"), format!("write at most {}", u32::MAX));
                None
            }
        }
    }

    /// A number that memory can hold; zero is for the caller to judge.
    fn size(&mut self, value: u64, at: Place) -> usize {
        usize::try_from(value).unwrap_or_else(|_| {
            self.mistakes.report(at, format!("`{value}` is too large"), "write a smaller number");
            0
        })
    }

    /// A span above zero; what is left out is the default.
    fn span(&mut self, field: &Field<Spanned<Span>>, default: Duration) -> Duration {
        let Some(Spanned { value: Span(span), at }) = field.get() else { return default };
        if span.is_zero() {
            self.mistakes.report(*at, "a time of zero leaves no time at all", "write one such as `500ms` or `20s`");
        }
        *span
    }

    /// Parses a text by the type that knows its meaning.
    fn parse<T: FromStr<Err: Into<Problem>>>(&mut self, text: &Text) -> Option<T> {
        self.meant(text, text.value.parse())
    }

    /// Reports why a text means nothing.
    fn meant<T>(&mut self, text: &Text, parsed: Result<T, impl Into<Problem>>) -> Option<T> {
        parsed.map_err(|error| error.into().report(text.at, &mut self.mistakes)).ok()
    }
}
