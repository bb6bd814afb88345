//! The walk through the routes. The first match wins, but only a sure match ends the walk. Of many routes an index yields
//! those that may match. Descriptors take the route of their domain.

use smallvec::SmallVec;

use super::Certainty;
use super::RequestReadings;
use super::Route;
use super::RouteId;
use super::SessionCarriers;
use super::index::RequestIndex;

/// Routes in the order they are tried.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    /// Those of domains come last.
    routes: Vec<Route>,
    /// How many routes are for requests.
    requests: usize,
    /// `None`: so few routes that comparing all of them is quicker.
    index: Option<RequestIndex>,
}

/// With fewer routes each of them is compared: most differ from a request in the first bytes of the path.
const MIN_INDEXED: usize = 17;

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
    /// The routes in their order, and those of domains after all others.
    pub fn new(routes: Vec<Route>) -> Self {
        let (mut routes, of_domains): (Vec<Route>, Vec<Route>) =
            routes.into_iter().partition(|route| route.domain.is_none());
        let requests = routes.len();
        let index = (requests >= MIN_INDEXED).then(|| RequestIndex::new(&routes));
        routes.extend(of_domains);
        Self { routes, requests, index }
    }

    /// Adds a route after those of its kind, and makes the index anew. The ids of domains change with each route of requests.
    pub fn push(&mut self, route: Route) -> &mut Route {
        let place = if route.domain.is_some() { self.routes.len() } else { self.requests };
        let mut routes = std::mem::take(self).into_routes();
        routes.insert(place, route);
        *self = Self::new(routes);
        &mut self.routes[place]
    }

    pub fn into_routes(self) -> Vec<Route> {
        self.routes
    }

    /// Every route.
    pub fn all(&self) -> &[Route] {
        &self.routes
    }

    /// Where requests to any route carry sessions.
    pub fn session_carriers(&self) -> SessionCarriers {
        SessionCarriers::of(self.routes.iter().filter_map(|route| route.sessions.as_ref()))
    }

    /// The routes that requests may take, in the order they are tried.
    pub fn of_requests(&self) -> &[Route] {
        &self.routes[..self.requests]
    }

    /// The route of a domain; `None`: no route names it.
    pub fn of_domain(&self, domain: &str) -> Option<RouteId> {
        let domains = (0..).map(RouteId).zip(&self.routes).skip(self.requests);
        domains.into_iter().find(|(_, route)| route.domain.as_deref() == Some(domain)).map(|(id, _)| id)
    }

    pub fn get(&self, id: RouteId) -> &Route {
        &self.routes[usize::from(id.0)]
    }

    pub fn walk(&self, request: &mut RequestReadings<'_>) -> Walk {
        match &self.index {
            Some(index) => self.walk_among(index.candidates(request.head), request),
            None => self.walk_all(request),
        }
    }

    fn walk_all(&self, request: &mut RequestReadings<'_>) -> Walk {
        self.walk_among((0..).map(RouteId).take(self.requests), request)
    }

    /// Compares the request with these routes, which are in order.
    fn walk_among(&self, ids: impl Iterator<Item = RouteId>, request: &mut RequestReadings<'_>) -> Walk {
        let mut walk = Walk::default();
        for id in ids {
            let Ok(certainty) = self.get(id).condition.judge(request) else { continue };
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
