//! The walk through the routes. The first match wins, but only a sure match ends the walk.

use smallvec::SmallVec;

use super::Certainty;
use super::RequestReadings;
use super::Route;
use super::RouteId;

/// Routes in the order they are tried.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    pub routes: Vec<Route>,
}

/// The routes that a request may take.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Walk {
    /// Each route that matches under some reading, in order, up to the first one that matches under all. The limits and
    /// `only` of all these routes hold.
    pub collected: SmallVec<[RouteId; 4]>,
    /// The first route that matches under the plain reading. It forwards the request.
    pub primary: Option<RouteId>,
}

impl RouteTable {
    pub fn get(&self, id: RouteId) -> &Route {
        &self.routes[usize::from(id.0)]
    }

    pub fn walk(&self, request: &mut RequestReadings<'_>) -> Walk {
        let mut walk = Walk::default();
        for (id, route) in (0..).map(RouteId).zip(&self.routes) {
            let Ok(certainty) = route.condition.judge(request) else { continue };
            walk.collected.push(id);
            if walk.primary.is_none() && certainty >= Certainty::Plainly {
                walk.primary = Some(id);
            }
            if certainty == Certainty::Surely {
                break;
            }
        }
        walk
    }
}

#[cfg(test)]
mod tests;
