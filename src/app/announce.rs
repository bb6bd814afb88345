//! The log lines when the gateway begins to serve.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tracing::{error, info, warn};

use super::{App, Origin, store};
use crate::app::listeners::ListenerChanges;
use crate::config::{Diagnostic, Settings};
use crate::gateway::Snapshot;
use crate::listen::ServesChange;
use crate::record::advice::{Advice, AdviceKind};
use crate::rules::limit::{Limit, LimitId, State};
use crate::rules::list::Members;
use crate::upstream::{ServerUrl, Upstream};
use crate::words::clock::Timestamp;

/// The numbers of the configured parts, counted before the settings are consumed.
pub(super) struct Summary {
    store: String,
    routes: usize,
    limits: usize,
    upstreams: Vec<String>,
}

impl Summary {
    pub(super) fn of(settings: &Settings) -> Self {
        let upstreams = settings.upstreams.iter().map(|upstream| {
            let servers: Vec<&str> = upstream.servers.iter().map(ServerUrl::name).collect();
            match &servers[..] {
                [only] if upstream.name.ends_with(only) => upstream.name.to_string(),
                several => format!("{} ({})", upstream.name, several.join(", ")),
            }
        });
        Self {
            store: store::describe(&settings.store),
            routes: settings.policy.routes.all().len(),
            limits: settings.policy.limits.len(),
            upstreams: upstreams.collect(),
        }
    }
}

/// Logs the store, the upstreams and the addresses in use, a line for each.
pub(super) fn announce(app: &App, origin: &Origin, summary: &Summary) {
    let configuration = match origin {
        Origin::File(file) => file.as_path(),
        Origin::Flags => Path::new("the command line"),
        Origin::StandardInput => Path::new("standard input"),
    };
    let name = app.sinks.gateway_name().get();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        gateway = &**name,
        configuration = %configuration.display(),
        routes = summary.routes,
        limits = summary.limits,
        workers = app.workers.count(),
        "portcullis {} serves {} as {name}",
        env!("CARGO_PKG_VERSION"),
        configuration.display(),
    );
    info!("{}", summary.store);
    for upstream in &summary.upstreams {
        info!(upstream, "forwarding to {upstream}");
    }
    for address in app.addresses() {
        info!(%address, "listening on {address}");
    }
    if let Some(address) = app.admin_address() {
        info!(%address, "health and metrics on {address}");
    } else {
        info!("no admin address: no health, no metrics");
    }
}

// The changes of a new configuration, for the log.

/// A longer list in a log line is not read.
const MOST_NAMED: usize = 20;

/// Names that were added, removed or changed, in words.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changes(Vec<String>);

impl Changes {
    /// The differences between two snapshots.
    pub fn between(old: &Snapshot, new: &Snapshot) -> Self {
        let mut changes = Self::default();
        // An upstream that did not change is the same object: it keeps its connections and the health of its servers.
        changes.compare("upstream", &upstreams(old), &upstreams(new), |old, new| Arc::ptr_eq(old, new));
        changes.compare("limit", &limits(old), &limits(new), |old, new| old == new);
        changes.add_counted_anew(&limits(old), &limits(new));
        changes.compare("list", &lists(old), &lists(new), |old, new| old == new);
        // Only the name and the limits of a route are compared: patterns cannot be compared.
        changes.compare("route", &routes(old), &routes(new), |old, new| old == new);
        changes
    }

    pub fn add(&mut self, change: String) {
        self.0.push(change);
    }

    /// Adds the changes of listeners.
    pub(super) fn add_listeners(&mut self, changes: ListenerChanges) {
        let ListenerChanges { opened, closed, proxy_protocol, serves, tls } = changes;
        for address in opened {
            self.add(format!("listening on {address}"));
        }
        for address in closed {
            self.add(format!("no longer listening on {address}"));
        }
        for (address, is_required) in proxy_protocol {
            let words = if is_required { "PROXY header required" } else { "PROXY header no longer required" };
            self.add(format!("{words} on {address}"));
        }
        for (address, change) in serves {
            let words = match change {
                ServesChange::Requests => "requests are served",
                ServesChange::Decisions => "decisions are served",
                ServesChange::OtherAskers => "other `from`",
            };
            self.add(format!("{words} on {address}"));
        }
        for address in tls {
            self.add(format!("other TLS on {address}"));
        }
    }

    /// A limit keeps its counts under its name, unless they are of another kind or of other keys.
    fn add_counted_anew(&mut self, old: &ByName<'_, &Limit>, new: &ByName<'_, &Limit>) {
        for (name, limit) in new {
            let Some(before) = old.get(name) else { continue };
            let what = match () {
                () if before.key.parts != limit.key.parts => "key",
                () if before.distinct != limit.distinct => "`distinct`",
                () if !State::is_shared(&before.rule, &limit.rule) => "algorithm",
                () => continue,
            };
            self.add(format!("limit {name} counts anew, as it has another {what}"));
        }
    }

    fn compare<T>(&mut self, kind: &str, old: &ByName<'_, T>, new: &ByName<'_, T>, unchanged: impl Fn(&T, &T) -> bool) {
        for (name, value) in new {
            match old.get(name) {
                None => self.add(format!("{kind} {name} added")),
                Some(before) if !unchanged(before, value) => self.add(format!("{kind} {name} changed")),
                Some(_) => {}
            }
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.add(format!("{kind} {name} removed"));
        }
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [] => f.write_str("the same names as before"),
            all if all.len() <= MOST_NAMED => f.write_str(&all.join(", ")),
            all => write!(f, "{} and {} more", all[..MOST_NAMED].join(", "), all.len() - MOST_NAMED),
        }
    }
}

type ByName<'a, T> = BTreeMap<&'a str, T>;

fn upstreams(snapshot: &Snapshot) -> ByName<'_, &Arc<Upstream>> {
    snapshot.upstreams.iter().map(|upstream| (&*upstream.settings().name, upstream)).collect()
}

fn limits(snapshot: &Snapshot) -> ByName<'_, &Limit> {
    snapshot.policy.limits.iter().map(|limit| (&*limit.name, limit)).collect()
}

fn lists(snapshot: &Snapshot) -> ByName<'_, &Members> {
    snapshot.policy.lists.iter().map(|policy| (&*policy.list.name, &policy.list.members)).collect()
}

fn routes(snapshot: &Snapshot) -> ByName<'_, Vec<&str>> {
    let policy = &snapshot.policy;
    let limits = |ids: &[LimitId]| ids.iter().map(|id| &*policy.limits[usize::from(id.0)].name).collect();
    policy.routes.all().iter().map(|route| (&*route.name, limits(&route.limits))).collect()
}

// The warnings of the configuration in force, and since when each holds.

/// The warnings of the configuration in force. Each is logged when it begins to hold.
#[derive(Debug, Default)]
pub(super) struct KnownWarnings {
    known: Vec<(Diagnostic, Timestamp)>,
}

impl KnownWarnings {
    /// The warnings of the configuration that the gateway starts with.
    pub(super) fn of(found: Vec<Diagnostic>, now: Timestamp) -> Self {
        let mut warnings = Self::default();
        warnings.renew(found, now);
        warnings
    }

    /// Takes the warnings of the configuration that comes into force now. Logs the new ones.
    pub(super) fn renew(&mut self, found: Vec<Diagnostic>, now: Timestamp) {
        let mut before = std::mem::take(&mut self.known);
        self.known = found.into_iter().map(|warning| (warning, now)).collect();
        let mut is_new = vec![true; self.known.len()];
        // If two warnings have the same words, the one at the old position is the old one.
        for is_same in [is_same as fn(&Diagnostic, &Diagnostic) -> bool, says_the_same] {
            for ((warning, since), is_new) in self.known.iter_mut().zip(&mut is_new).filter(|(_, is_new)| **is_new) {
                if let Some(place) = before.iter().position(|(known, _)| is_same(known, warning)) {
                    *since = before.swap_remove(place).1;
                    *is_new = false;
                }
            }
        }
        let new = self.known.iter().zip(is_new).filter(|(_, is_new)| *is_new);
        log_warnings(new.map(|((warning, _), _)| warning));
    }

    /// The warnings as the admin API shows them.
    pub(super) fn advice(&self) -> Vec<Advice> {
        self.known.iter().map(|(warning, since)| advice(warning, *since)).collect()
    }
}

fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.line, one.column) == (other.line, other.column) && says_the_same(one, other)
}

/// Lines that come or go before it do not change a warning.
fn says_the_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let is_alike = |one: &str, other: &str| without_lines(one).eq(without_lines(other));
    let [help, others_help] = [one, other].map(|warning| warning.help.as_deref().unwrap_or_default());
    one.file == other.file && is_alike(&one.message, &other.message) && is_alike(help, others_help)
}

/// The parts of a text without the numbers of the lines that it names.
fn without_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split("line ").map(|part| part.trim_start_matches(|first: char| first.is_ascii_digit()))
}

fn advice(Diagnostic { file, line, column, message, help, .. }: &Diagnostic, since: Timestamp) -> Advice {
    Advice {
        kind: AdviceKind::Check,
        message: format!("{}:{line}:{column}: {message}", file.display()),
        since,
        limit: None,
        route: None,
        help: help.clone().unwrap_or_default(),
    }
}

// Mistakes and warnings of the configuration in the operational log, with the place as fields for programs that read it.

/// Logs each mistake as `check` prints it.
pub(super) fn log_mistakes(mistakes: &[Diagnostic]) {
    for Diagnostic { file, line, column, message, help, .. } in mistakes {
        let file = file.display();
        let help = help.as_deref();
        error!(%file, line, column, help, "{file}:{line}:{column}: {message}");
    }
}

/// Logs settings that are valid but probably a mistake.
pub(super) fn log_warnings<'w>(warnings: impl IntoIterator<Item = &'w Diagnostic>) {
    for Diagnostic { file, line, column, message, help, .. } in warnings {
        let file = file.display();
        let help = help.as_deref();
        warn!(%file, line, column, help, "{file}:{line}:{column}: {message}");
    }
}

#[cfg(test)]
mod tests;
