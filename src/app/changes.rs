//! What a new configuration changes, for the log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::gateway::Snapshot;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::list::Members;
use crate::upstream::Upstream;

/// Names that came, went, or mean something else now.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changes(Vec<String>);

impl Changes {
    /// What is different in `new`.
    pub fn between(old: &Snapshot, new: &Snapshot) -> Self {
        let mut changes = Self::default();
        // An upstream that did not change is the same one: it keeps its connections and what it knows of its servers.
        changes.compare("upstream", &upstreams(old), &upstreams(new), |old, new| Arc::ptr_eq(old, new));
        changes.compare("limit", &limits(old), &limits(new), |old, new| old == new);
        changes.compare("list", &lists(old), &lists(new), |old, new| old == new);
        // Of a route only its name and its limits are compared: patterns do not say whether they are the same.
        changes.compare("route", &routes(old), &routes(new), |old, new| old == new);
        changes
    }

    pub fn say(&mut self, change: String) {
        self.0.push(change);
    }

    fn compare<T>(&mut self, kind: &str, old: &Named<'_, T>, new: &Named<'_, T>, unchanged: impl Fn(&T, &T) -> bool) {
        for (name, value) in new {
            match old.get(name) {
                None => self.say(format!("{kind} {name} added")),
                Some(before) if !unchanged(before, value) => self.say(format!("{kind} {name} changed")),
                Some(_) => {}
            }
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.say(format!("{kind} {name} removed"));
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

/// More than this is not read.
const MOST_NAMED: usize = 20;

type Named<'a, T> = BTreeMap<&'a str, T>;

fn upstreams(snapshot: &Snapshot) -> Named<'_, &Arc<Upstream>> {
    snapshot.upstreams.iter().map(|upstream| (&*upstream.settings().name, upstream)).collect()
}

fn limits(snapshot: &Snapshot) -> Named<'_, &Limit> {
    snapshot.policy.limits.iter().map(|limit| (&*limit.name, limit)).collect()
}

fn lists(snapshot: &Snapshot) -> Named<'_, &Members> {
    snapshot.policy.lists.iter().map(|policy| (&*policy.list.name, &policy.list.members)).collect()
}

fn routes(snapshot: &Snapshot) -> Named<'_, Vec<&str>> {
    let policy = &snapshot.policy;
    let limits = |ids: &[LimitId]| ids.iter().map(|id| &*policy.limits[usize::from(id.0)].name).collect();
    policy.routes.routes.iter().map(|route| (&*route.name, limits(&route.limits))).collect()
}

#[cfg(test)]
mod tests;
