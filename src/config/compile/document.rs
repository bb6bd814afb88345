//! Compiles a document, section by section.

use std::path::PathBuf;

use super::compiler::Compiler;
use super::compiler::Proofs;
use super::compiler::Totals;
use super::limits::Limits;
use super::routes::RouteContext;
use super::sessions;
use super::store;
use super::upstreams::Upstreams;
use crate::client::Prefix;
use crate::config::diagnostic::Diagnostic;
use crate::config::mistakes::Mistakes;
use crate::config::raw::Document;
use crate::config::settings::Settings;
use crate::config::shown::ShownConfig;
use crate::config::yaml::Node;
use crate::decision::Policy;
use crate::files::WatchedFile;
use crate::route::RouteTable;
use crate::route::UpstreamId;
use crate::upstream::HeadBounds;

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
        prefix: Prefix::default(),
        on_failure: store::default_on_failure(document),
        leases: store::default_leases(document),
        has_redis: store::has_redis(document),
        proofs: Proofs { sessions: sessions::are_learned(document), jwt: !document.jwt.is_absent() },
        totals: Totals::default(),
    };
    let settings = compiler.settings(document, root);
    if compiler.mistakes.is_empty() { Ok(settings) } else { Err(compiler.mistakes.into_sorted()) }
}

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
            audit: self.audit(document),
            log: Self::log(document),
            route_series: Self::route_series(document),
            requests: self.requests(document, &connections),
            tracing: self.tracing(document),
            tokens,
            connections,
            files: std::mem::take(&mut self.files),
            outputs: std::mem::take(&mut self.outputs),
            warnings: self.mistakes.take_warnings(),
            shown: ShownConfig::of(root),
        }
    }
}
