//! Values by the hosts that routes are for.

use hashbrown::HashMap;

use crate::route::HostPattern;

/// A value for each host, for each domain of `*.domain`, and for any host.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts<T> {
    exact: HashMap<Box<str>, T>,
    below: HashMap<Box<str>, T>,
    any: T,
    /// The most dots in a domain of `below`: longer domains of a host are not looked up.
    most_dots: Option<usize>,
}

impl<T: Default> Hosts<T> {
    pub(super) fn of_mut(&mut self, host: Option<&HostPattern>) -> &mut T {
        match host {
            None => &mut self.any,
            Some(HostPattern::Exact(host)) => self.exact.entry(host.clone()).or_default(),
            Some(HostPattern::Below(domain)) => {
                self.most_dots = self.most_dots.max(Some(domain.matches('.').count()));
                self.below.entry(domain.clone()).or_default()
            }
        }
    }

    /// What is for a host.
    pub(super) fn of(&self, host: &str) -> impl Iterator<Item = &T> {
        self.exact.get(host).into_iter().chain(self.above(host)).chain([&self.any])
    }

    /// What is for every host of a pattern.
    pub(super) fn including(&self, host: Option<&HostPattern>) -> impl Iterator<Item = &T> {
        let (same, name) = match host {
            None => (None, None),
            Some(HostPattern::Exact(host)) => (self.exact.get(host), Some(host)),
            Some(HostPattern::Below(domain)) => (self.below.get(domain), Some(domain)),
        };
        let above = name.into_iter().flat_map(|name| self.above(name));
        same.into_iter().chain(above).chain([&self.any])
    }

    /// What is for each domain that a host is below.
    fn above<'t>(&'t self, host: &str) -> impl Iterator<Item = &'t T> {
        // From the right, so that a host of many labels costs no more than the longest domain that is known.
        let looked_up = self.most_dots.map_or(0, |dots| dots + 1);
        let domains = host.rmatch_indices('.').take(looked_up).map(|(dot, _)| &host[dot + 1..]);
        domains.filter_map(|domain| self.below.get(domain))
    }
}
