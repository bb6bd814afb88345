//! Leaves out of a policy what a log does not tell enough for. Nothing is guessed.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Arc;

use serde::Serialize;

use super::LogContents;
use crate::decision::Policy;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::list::ListId;
use crate::route::Condition;
use crate::route::Route;
use crate::route::RouteTable;

/// A part of a configuration that was not replayed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LeftOut {
    pub kind: LeftOutKind,
    /// The name of the limit, route or list.
    pub name: Arc<str>,
    /// Left out on this route alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Arc<str>>,
    /// What the log does not hold: `param.username`.
    pub lacks: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutKind {
    Limit,
    /// With all its limits.
    Route,
    /// `only` of a route.
    Only,
    /// A list in `access`.
    List,
}

/// Removes from `policy` what cannot be decided with these contents, and says what was removed. Limits keep their ids.
pub fn leave_out(policy: &mut Policy, contents: &LogContents) -> Vec<LeftOut> {
    let mut pass = Pass { contents, unknown_lists: unknown_lists(policy, contents), ..Pass::new(contents) };
    pass.lists(policy);
    let routes = mem::take(&mut policy.routes).into_routes();
    let routes = routes.into_iter().filter_map(|route| pass.route(route, &policy.limits));
    policy.routes = RouteTable::new(routes.collect());
    let everywhere = mem::take(&mut policy.everywhere);
    policy.everywhere = everywhere.into_iter().filter(|&id| pass.keeps_everywhere(id, policy.limit(id))).collect();
    pass.limits_without_place(policy);
    pass.left_out
}

/// What has been left out so far.
struct Pass<'c> {
    contents: &'c LogContents,
    /// The lists whose members cannot be recognized, and what is missing for it.
    unknown_lists: HashMap<ListId, String>,
    left_out: Vec<LeftOut>,
    /// The limits that were left out on a route, or everywhere.
    limits: Vec<(LimitId, Option<Arc<str>>, Vec<String>)>,
    /// What the outcomes of routes lack, and their known clients.
    outcomes_lack: Vec<String>,
    known_clients_lack: Vec<String>,
}

impl<'c> Pass<'c> {
    fn new(contents: &'c LogContents) -> Self {
        Self {
            contents,
            unknown_lists: HashMap::new(),
            left_out: Vec::new(),
            limits: Vec::new(),
            outcomes_lack: Vec::new(),
            known_clients_lack: Vec::new(),
        }
    }

    fn lists(&mut self, policy: &mut Policy) {
        let access = &mut policy.access;
        for lists in [&mut access.allow, &mut access.deny] {
            let unknown = lists.iter().filter_map(|id| Some((*id, self.unknown_lists.get(id)?.clone())));
            for (id, lacks) in unknown.collect::<Vec<_>>() {
                let name = policy.lists[usize::from(id.0)].list.name.clone();
                self.left_out.push(LeftOut { kind: LeftOutKind::List, name, route: None, lacks: vec![lacks] });
            }
            lists.retain(|id| !self.unknown_lists.contains_key(id));
        }
    }

    /// The route without what cannot be decided. `None`: it cannot be decided which requests take it.
    fn route(&mut self, mut route: Route, limits: &[Limit]) -> Option<Route> {
        let name = Arc::clone(&route.name);
        let lacks = self.route_lacks(&route);
        if !lacks.is_empty() {
            for &id in &route.limits {
                self.limits.push((id, Some(Arc::clone(&name)), lacks.clone()));
            }
            self.left_out.push(LeftOut { kind: LeftOutKind::Route, name, route: None, lacks });
            return None;
        }
        let only = route.only.as_deref().unwrap_or_default();
        let lacks: Vec<_> = only.iter().filter_map(|list| self.unknown_lists.get(list).cloned()).collect();
        if !lacks.is_empty() {
            route.only = None;
            self.left_out.push(LeftOut { kind: LeftOutKind::Only, name: Arc::clone(&name), route: None, lacks });
        }
        let outcome_lacks = self.contents.lacks_for_outcome(&route);
        if !outcome_lacks.is_empty() {
            route.outcome = None;
        }
        let subject = route.known_clients.iter().flat_map(|known| &known.of.parts);
        let known_clients_lack: Vec<_> = subject.filter_map(|part| self.contents.lacks(&part.selector)).collect();
        if !known_clients_lack.is_empty() {
            route.known_clients = None;
        }
        route.limits.retain(|&id| {
            let limit = &limits[usize::from(id.0)];
            let mut lacks = self.limit_lacks(limit);
            if limit.unless_known {
                lacks.extend(known_clients_lack.iter().cloned());
            }
            if limit.count.outcome().is_some() || limit.reset_on.is_some() {
                lacks.extend(outcome_lacks.iter().cloned());
            }
            self.keeps(id, Some(&name), lacks)
        });
        self.outcomes_lack.extend(outcome_lacks);
        self.known_clients_lack.extend(known_clients_lack);
        Some(route)
    }

    fn keeps_everywhere(&mut self, id: LimitId, limit: &Limit) -> bool {
        let mut lacks = self.limit_lacks(limit);
        if limit.unless_known {
            lacks.extend(self.known_clients_lack.iter().cloned());
        }
        if limit.count.outcome().is_some() || limit.reset_on.is_some() {
            lacks.extend(self.outcomes_lack.iter().cloned());
        }
        self.keeps(id, None, lacks)
    }

    fn keeps(&mut self, id: LimitId, route: Option<&Arc<str>>, lacks: Vec<String>) -> bool {
        if lacks.is_empty() {
            return true;
        }
        self.limits.push((id, route.cloned(), lacks));
        false
    }

    /// Names the limits that were left out: without a route those that have no place left.
    fn limits_without_place(&mut self, policy: &Policy) {
        let on_routes = policy.routes.all().iter().flat_map(|route| &route.limits);
        let placed: Vec<LimitId> = on_routes.chain(&policy.everywhere).copied().collect();
        let mut named: Vec<LeftOut> = Vec::new();
        for (id, route, lacks) in mem::take(&mut self.limits) {
            let name = Arc::clone(&policy.limit(id).name);
            let route = route.filter(|_| placed.contains(&id));
            let known = named.iter_mut().find(|known| known.name == name && known.route == route);
            match known {
                Some(known) => known.lacks.extend(lacks),
                None => named.push(LeftOut { kind: LeftOutKind::Limit, name, route, lacks }),
            }
        }
        for left_out in &mut named {
            left_out.lacks.sort();
            left_out.lacks.dedup();
        }
        self.left_out.append(&mut named);
    }

    /// What is missing to decide which requests take a route.
    fn route_lacks(&self, route: &Route) -> Vec<String> {
        match &route.domain {
            // No log of requests holds what a proxy asked about.
            Some(domain) => vec![format!("descriptors of the domain {domain}")],
            None => self.condition_lacks(&route.condition),
        }
    }

    fn condition_lacks(&self, condition: &Condition) -> Vec<String> {
        let contents = self.contents;
        let mut lacks = Vec::new();
        lacks.extend(condition.host.as_ref().and_then(|_| contents.lacks_host()));
        lacks.extend(condition.headers.iter().filter_map(|(name, _)| contents.lacks_header(name)));
        lacks.extend(condition.queries.iter().filter_map(|(name, _)| contents.lacks_query(name)));
        lacks.extend(condition.cookies.iter().filter_map(|(name, _)| contents.lacks_cookie(name)));
        lacks.extend(condition.client.iter().filter_map(|list| self.unknown_lists.get(list).cloned()));
        lacks
    }

    /// Apart from outcomes and known clients, which belong to a route.
    fn limit_lacks(&self, limit: &Limit) -> Vec<String> {
        let parts = limit.key.parts.iter().chain(&limit.distinct);
        let mut lacks: Vec<_> = parts.filter_map(|part| self.contents.lacks(&part.selector)).collect();
        lacks.extend(limit.unless.iter().filter_map(|list| self.unknown_lists.get(list).cloned()));
        if matches!(limit.rule, Rule::Concurrent(_)) {
            lacks.extend(self.contents.lacks_durations());
        }
        lacks
    }
}

fn unknown_lists(policy: &Policy, contents: &LogContents) -> HashMap<ListId, String> {
    let lists = (0..).map(ListId).zip(&policy.lists);
    lists.filter_map(|(id, list)| Some((id, contents.lacks(&list.of.as_ref()?.selector)?))).collect()
}

impl fmt::Display for LeftOut {
    /// `login-failures: not replayed: the log does not hold param.username`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, route, lacks } = self;
        match kind {
            LeftOutKind::Limit => write!(f, "{name}: not replayed")?,
            LeftOutKind::Route => write!(f, "route {name}: not replayed")?,
            LeftOutKind::Only => write!(f, "route {name}: `only` not replayed")?,
            LeftOutKind::List => write!(f, "list {name}: not replayed")?,
        }
        if let Some(route) = route {
            write!(f, " on route {route}")?;
        }
        write!(f, ": the log does not hold {}", lacks.join(", "))
    }
}
