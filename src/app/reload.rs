//! Reading the configuration anew: all of it is taken over, or nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tokio::task;
use tokio::task::JoinHandle;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::App;
use super::Load;
use super::StartError;
use super::build;
use super::changes::Changes;
use super::listeners::Turnover;
use super::sockets::Bound;
use super::sockets::Inherited;
use super::sockets::bind;
use super::store;
use super::tidings;
use crate::admin;
use crate::config::Diagnostic;
use crate::config::Settings;
use crate::config::Warnings;
use crate::files::Watched;
use crate::gateway::Snapshot;
use crate::listen::Entrance;
use crate::listen::Stack;
use crate::record::Sinks;
use crate::record::audit::Append;
use crate::record::audit::Trail;
use crate::record::metrics::Reload;
use crate::record::notify::Desks;
use crate::upstream::Upstream;

/// Why the running configuration stays.
#[derive(Debug)]
pub enum Refused {
    Mistakes(Vec<Diagnostic>),
    Start(StartError),
    /// Reading it panicked: a defect, and no reason to stop serving.
    Defect,
}

/// A configuration that was read and built. What is left to be done is to bind its addresses.
pub(super) struct Draft {
    snapshot: Snapshot,
    changes: Changes,
    listen: Vec<Entrance>,
    admin: Option<admin::Settings>,
    rest: Rest,
}

/// A configuration of which nothing can fail any more.
struct Prepared {
    snapshot: Snapshot,
    changes: Changes,
    listeners: Turnover,
    admin: AdminChange,
    rules: admin::Rules,
    rest: Rest,
}

enum AdminChange {
    None,
    Close,
    Open(Bound),
}

/// What of the settings is neither in the snapshot nor bound.
struct Rest {
    store: crate::store::Settings,
    log: crate::record::LogSettings,
    trail: Trail,
    desks: Desks,
    connections: crate::listen::Settings,
    files: Vec<Watched>,
    warnings: Warnings,
}

/// What reading anew needs to know of what is in force.
struct Reader {
    load: Arc<Load>,
    previous: Arc<Snapshot>,
    sinks: Sinks,
    desks: Desks,
    streams: Option<Arc<dyn Append>>,
}

impl App {
    /// Reads, checks and builds everything on a thread of its own: a list of a million lines takes a while, and a file
    /// system that hangs takes for ever. [`Self::finish_reload`] swaps it in.
    pub(super) fn begin_reload(&self) -> JoinHandle<Result<Box<Draft>, Refused>> {
        let reader = Reader {
            load: Arc::clone(&self.load),
            previous: self.live.load(),
            sinks: self.sinks.clone(),
            desks: self.desks.clone(),
            streams: self.streams.clone(),
        };
        task::spawn_blocking(move || reader.read().map(Box::new))
    }

    /// Binds what is to be bound, then swaps everything in at once. Whatever went wrong is logged, and changes nothing.
    pub(super) fn finish_reload(&mut self, read: Result<Box<Draft>, Refused>) -> Result<Changes, Refused> {
        let prepared = read.and_then(|draft| self.prepare(*draft));
        let outcome = prepared.map(|prepared| self.take_over(prepared));
        match &outcome {
            Ok(changes) => {
                info!("configuration reloaded; {changes}");
                self.sinks.metrics().reloaded(Reload::Success);
            }
            Err(refused) => {
                tell(refused);
                if let Refused::Mistakes(mistakes) = refused {
                    self.watch_also(mistakes);
                }
                self.sinks.metrics().reloaded(Reload::Failure);
            }
        }
        // By the settings that hold from now on: whoever reads the trail learns when they began.
        self.sinks.tell(tidings::of_reload(&outcome));
        outcome
    }

    fn prepare(&self, draft: Draft) -> Result<Prepared, Refused> {
        let Draft { snapshot, changes, listen, admin, rest } = draft;
        let listeners = self.listeners.prepare(listen, &self.workers)?;
        let token = admin.as_ref().and_then(|admin| admin.token.clone());
        let rules = admin::Rules { token, on_failure: rest.store.on_failure };
        let admin = self.prepare_admin(admin)?;
        Ok(Prepared { snapshot, changes, listeners, admin, rules, rest })
    }

    fn prepare_admin(&self, wanted: Option<admin::Settings>) -> Result<AdminChange, StartError> {
        match (&self.admin, wanted) {
            (None, None) => Ok(AdminChange::None),
            (Some(_), None) => Ok(AdminChange::Close),
            (Some(admin), Some(wanted)) if admin.configured == wanted.address => Ok(AdminChange::None),
            (_, Some(wanted)) => {
                let bound = bind(wanted.address, Stack::Dual, 1, &mut Inherited::default())?;
                Ok(AdminChange::Open(bound))
            }
        }
    }

    fn take_over(&mut self, prepared: Prepared) -> Changes {
        let Prepared { snapshot, mut changes, listeners, admin, rules, rest } = prepared;
        self.checks.follow(&snapshot.upstreams);
        self.sinks.herald().follow(rest.trail);
        Upstream::close_removed(&self.live.load().upstreams, &snapshot.upstreams);
        self.live.replace(snapshot);
        self.desks = rest.desks;

        // New connections are to find the new rules: the snapshot first, the sockets after it.
        let drain = rest.connections.drain;
        self.connection_settings.store(Arc::new(rest.connections));
        let turned = self.listeners.turn_over(listeners, &self.workers, &self.connections, drain);
        for address in turned.opened {
            changes.say(format!("listening on {address}"));
        }
        for address in turned.closed {
            changes.say(format!("no longer listening on {address}"));
        }
        for (address, is_required) in turned.proxy_protocol {
            let words = if is_required { "PROXY header required" } else { "PROXY header no longer required" };
            changes.say(format!("{words} on {address}"));
        }
        for address in turned.tls {
            changes.say(format!("other TLS on {address}"));
        }
        // A listener that is not for this machine alone is not to answer without its token.
        self.control.follow(rules);
        self.change_admin(admin, &mut changes);

        if let Some(log) = &self.log {
            log.change(&rest.log);
        }
        let waiting = store::waiting(&self.store_settings, &rest.store);
        if !waiting.is_empty() {
            warn!(
                keys = waiting.join(", "),
                "{}: the change takes effect with the next start, the store that runs keeps its counters",
                waiting.join(", "),
            );
        }
        if rest.warnings != self.warnings {
            super::tell(&rest.warnings);
            self.warnings = rest.warnings;
        }
        self.log_settings = rest.log;
        self.files = rest.files;
        changes
    }

    fn change_admin(&mut self, change: AdminChange, changes: &mut Changes) {
        let next = match change {
            AdminChange::None => return,
            AdminChange::Close => None,
            AdminChange::Open(bound) => Some(super::Admin::serve(bound, &self.control)),
        };
        if let Some(admin) = &next {
            changes.say(format!("admin on {}", admin.address));
        }
        if let Some(super::Admin { address, stopper, sockets, .. }) = std::mem::replace(&mut self.admin, next) {
            changes.say(format!("admin no longer on {address}"));
            drop(sockets);
            stopper.close();
        }
    }

    /// A file that was named for the first time and is wrong is watched too: putting it right is a change.
    fn watch_also(&mut self, mistakes: &[Diagnostic]) {
        let known: BTreeSet<&Path> = self.files.iter().map(|file| &*file.path).collect();
        let new: BTreeSet<&Path> =
            mistakes.iter().map(|mistake| &*mistake.file).filter(|file| !known.contains(file)).collect();
        let new: Vec<Watched> = new.into_iter().map(Watched::unseen).collect();
        self.files.extend(new);
    }

    /// Frees configurations that no request holds any more, on a thread where nobody waits for it.
    pub fn free_unused(&mut self) {
        let unused = self.live.take_unused();
        if !unused.is_empty() {
            task::spawn_blocking(move || drop(unused));
        }
    }
}

impl Reader {
    /// Blocks. To be called within a runtime.
    fn read(self) -> Result<Draft, Refused> {
        let Self { load, previous, sinks, desks, streams } = self;
        let Settings {
            listen,
            admin,
            clients,
            store,
            upstreams,
            policy,
            notify,
            audit,
            log,
            connections,
            requests,
            files,
            outputs,
            warnings,
        } = load().map_err(Refused::Mistakes)?;
        let trail = super::open_trail(&sinks, &audit, streams.as_ref(), &outputs)?;
        let desks = sinks.herald().desks(&notify, &desks, sinks.metrics());
        let parts = build::Parts { policy, clients, upstreams, requests };
        let snapshot = build::snapshot(parts, &log, &desks, Some(&previous), &sinks);
        let changes = Changes::between(&previous, &snapshot);
        let rest = Rest { store, log, trail, desks, connections, files, warnings };
        Ok(Draft { snapshot, changes, listen, admin, rest })
    }
}

impl Refused {
    /// Nothing is wrong but a certificate and a key that do not belong together; they are two files, and perhaps only one
    /// of them has been renewed so far.
    pub(super) fn is_of_a_pair(&self) -> bool {
        matches!(self, Self::Mistakes(mistakes) if mistakes.iter().all(|mistake| mistake.is_of_a_pair))
    }
}

impl From<StartError> for Refused {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Mistakes(mistakes) => Self::Mistakes(mistakes),
            other => Self::Start(other),
        }
    }
}

/// The same that `check` prints, with the place as fields for those who read logs by program.
fn tell(refused: &Refused) {
    match refused {
        Refused::Mistakes(mistakes) => {
            for Diagnostic { file, line, column, message, help, .. } in mistakes {
                let file = file.display();
                let help = help.as_deref();
                error!(%file, line, column, help, "{file}:{line}:{column}: {message}");
            }
            error!(mistakes = mistakes.len(), "configuration not reloaded, the running one stays in force");
        }
        Refused::Start(error) => error!(%error, "configuration not reloaded, the running one stays in force"),
        Refused::Defect => error!("configuration not reloaded: reading it panicked, the running one stays in force"),
    }
}
