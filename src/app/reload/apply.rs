//! The second half of a reload: addresses are bound, then everything is swapped in at once.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tracing::{info, warn};

use crate::admin::{AdminRules, AdminSettings, ReloadReport};
use crate::app::announce::Changes;
use crate::app::event_sources::reload_event;
use crate::app::listeners::{AdminListener, ListenerPlan};
use crate::app::reload::{BuiltConfig, OtherSettings, ReloadError};
use crate::app::sockets::{BoundSockets, InheritedSockets, bind_admin};
use crate::app::start::{ListenError, gateway_name};
use crate::app::{App, store};
use crate::config::Diagnostic;
use crate::gateway::Snapshot;
use crate::record::metrics::ReloadResult;
use crate::upstream::Upstream;
use crate::words::clock;
use crate::words::files::WatchedFile;

/// A configuration with its addresses bound. Nothing of it can fail any more.
struct BoundConfig {
    snapshot: Snapshot,
    changes: Changes,
    listeners: ListenerPlan,
    admin: AdminChange,
    rules: AdminRules,
    other: OtherSettings,
}

enum AdminChange {
    None,
    Close,
    Open(BoundSockets),
}

impl App {
    /// Binds the new addresses, then swaps everything in at once. An error is logged and changes nothing.
    pub(super) fn finish_reload(
        &mut self,
        read: Result<Box<BuiltConfig>, ReloadError>,
    ) -> Result<Changes, ReloadError> {
        let bound = read.and_then(|built| self.bind_config(*built));
        let result = bound.map(|bound| self.apply_config(bound));
        match &result {
            Ok(changes) => {
                info!("configuration reloaded; {changes}");
                self.sinks.metrics().count_reload(ReloadResult::Success);
            }
            Err(error) => {
                error.log();
                if let ReloadError::Mistakes(mistakes) = error {
                    self.watch_also(mistakes);
                }
                self.sinks.metrics().count_reload(ReloadResult::Failure);
            }
        }
        let refused = result.as_ref().err().map(ToString::to_string);
        self.control.set_last_reload(ReloadReport { at: clock::wall(), refused });
        // Written by the new audit settings, so that each trail holds the reload that it began with.
        self.sinks.publish(reload_event(&result));
        result
    }

    fn bind_config(&self, built: BuiltConfig) -> Result<BoundConfig, ReloadError> {
        let BuiltConfig { snapshot, changes, listen, admin, addresses, other } = built;
        let unusable = |error: ListenError| ReloadError::Mistakes(vec![error.mistake(&addresses)]);
        let listeners = self.listeners.prepare(listen, &self.workers).map_err(unusable)?;
        let token = admin.as_ref().and_then(|admin| admin.token.clone());
        let rules = AdminRules { token, on_failure: other.store.on_failure };
        let admin = self.bind_admin(admin).map_err(unusable)?;
        Ok(BoundConfig { snapshot, changes, listeners, admin, rules, other })
    }

    fn bind_admin(&self, wanted: Option<AdminSettings>) -> Result<AdminChange, ListenError> {
        match (&self.admin, wanted) {
            (None, None) => Ok(AdminChange::None),
            (Some(_), None) => Ok(AdminChange::Close),
            (Some(admin), Some(wanted)) if admin.configured == wanted.address.into() => Ok(AdminChange::None),
            (_, Some(wanted)) => {
                let bound = bind_admin(wanted.address, &mut InheritedSockets::default())?;
                Ok(AdminChange::Open(bound))
            }
        }
    }

    fn apply_config(&mut self, bound: BoundConfig) -> Changes {
        let BoundConfig { snapshot, mut changes, listeners, admin, rules, other } = bound;
        self.upstream_tasks.follow(&snapshot.upstreams);
        self.sinks.event_bus().set_trail(other.trail);
        Upstream::close_removed(&self.live.load().upstreams, &snapshot.upstreams);
        self.live.replace(snapshot);
        self.channels = other.channels;
        self.source_tasks.follow_lists(&other.lists);
        self.lists.store(Arc::new(other.lists));
        self.source_tasks.replace_keys(other.keys);

        // First the snapshot, then the sockets: a new connection must find the new rules.
        self.connection_settings.store(Arc::new(other.connections));
        let listener_changes = self.listeners.apply(listeners, &self.workers, &self.connections);
        changes.add_listeners(listener_changes);
        self.control.set_listeners(self.addresses(), self.listeners.name_expiries());
        // The token first: a listener that opens to other machines must not answer without it.
        self.control.set_rules(rules);
        self.change_admin(admin, &mut changes);

        if let Some(log) = &self.log {
            log.change(&other.log);
        }
        if other.log.file != self.log_settings.file {
            changes.add(match &other.log.file {
                Some(file) => format!("the log goes to {}", file.display()),
                None => "the log no longer goes to a file".to_owned(),
            });
        }
        self.sinks.log_file().set(other.log_file);
        let name = gateway_name(other.log.gateway.as_ref(), self.addresses().iter());
        if self.sinks.gateway_name().set(name.clone()) {
            changes.add(format!("this gateway is called {name}"));
        }
        let waiting = store::keys_for_next_start(&self.store_settings, &other.store);
        if !waiting.is_empty() {
            let keys = waiting.join(", ");
            warn!(keys, "{keys}: the change takes effect with the next start, the store that runs keeps its counters");
        }
        self.in_force.renew(other.shown, other.warnings, waiting);
        self.control.set_config(self.in_force.loaded(&other.files));
        self.log_settings = other.log;
        self.files = other.files;
        changes
    }

    fn change_admin(&mut self, change: AdminChange, changes: &mut Changes) {
        let next = match change {
            AdminChange::None => return,
            AdminChange::Close => None,
            AdminChange::Open(bound) => Some(AdminListener::serve(bound, &self.control)),
        };
        if let Some(admin) = &next {
            changes.add(format!("admin on {}", admin.address));
        }
        if let Some(AdminListener { address, stopper, sockets, .. }) = std::mem::replace(&mut self.admin, next) {
            changes.add(format!("admin no longer on {address}"));
            drop(sockets);
            stopper.close();
        }
    }

    /// Also watches files with mistakes that the configuration names for the first time, so that correcting one causes a
    /// reload.
    fn watch_also(&mut self, mistakes: &[Diagnostic]) {
        let known: BTreeSet<&Path> = self.files.iter().map(|file| &*file.path).collect();
        let new: BTreeSet<&Path> =
            mistakes.iter().map(|mistake| &*mistake.file).filter(|file| !known.contains(file)).collect();
        let new: Vec<WatchedFile> = new.into_iter().map(WatchedFile::unseen).collect();
        self.files.extend(new);
    }
}
