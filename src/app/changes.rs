//! What a new configuration changes, for the log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::listeners::ListenerChanges;
use crate::gateway::Snapshot;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::list::Members;
use crate::listen::ServesChange;
use crate::upstream::Upstream;

/// Names that were added, removed or changed, in words.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changes(Vec<String>);

impl Changes {
    /// What is different in `new`.
    pub fn between(old: &Snapshot, new: &Snapshot) -> Self {
        let mut changes = Self::default();
        // An upstream that did not change is the same object: it keeps its connections and the health of its servers.
        changes.compare("upstream", &upstreams(old), &upstreams(new), |old, new| Arc::ptr_eq(old, new));
        changes.compare("limit", &limits(old), &limits(new), |old, new| old == new);
        changes.compare("list", &lists(old), &lists(new), |old, new| old == new);
        // Only the name and the limits of a route are compared: patterns cannot be compared.
        changes.compare("route", &routes(old), &routes(new), |old, new| old == new);
        changes
    }

    pub fn add(&mut self, change: String) {
        self.0.push(change);
    }

    /// What the change of listeners adds.
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

/// A longer list in a log line is not read.
const MOST_NAMED: usize = 20;

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

#[cfg(test)]
mod tests;
