//! How much the clients of a route did.

use std::collections::HashMap;
use std::net::IpAddr;

use http::StatusCode;

use super::busy::Busy;
use crate::clock::Timestamp;

/// What is known of all clients, by the number of the route. Number 0 is for all requests.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) routes: Vec<Statuses>,
    clients: HashMap<(u16, IpAddr), ClientFigures>,
    /// Whether there were more clients than are remembered.
    pub(super) is_cut: bool,
}

/// How the requests of a route were answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Statuses {
    pub(super) total: u64,
    /// 401 and 403.
    pub(super) refused: u64,
    pub(super) redirects: u64,
    pub(super) ok: u64,
}

/// The requests of one client to one route.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientFigures {
    pub(super) minute: Busy,
    pub(super) hour: Busy,
    /// Those answered with 401 or 403.
    pub(super) refused: Busy,
    /// Those answered with 200.
    pub(super) ok: Busy,
}

impl Figures {
    pub(super) fn new(routes: usize) -> Self {
        Self { routes: vec![Statuses::default(); routes + 1], clients: HashMap::new(), is_cut: false }
    }

    pub(super) fn add(&mut self, route: u16, client: IpAddr, at: Timestamp, status: Option<StatusCode>) {
        let is_refused = status.is_some_and(|status| [401, 403].contains(&status.as_u16()));
        let is_ok = status == Some(StatusCode::OK);
        let statuses = &mut self.routes[usize::from(route)];
        statuses.total += 1;
        statuses.refused += u64::from(is_refused);
        statuses.redirects += u64::from(status.is_some_and(|status| status.is_redirection()));
        statuses.ok += u64::from(is_ok);
        if self.clients.len() >= MOST_CLIENTS && !self.clients.contains_key(&(route, client)) {
            self.is_cut = true;
            return;
        }
        let figures = self.clients.entry((route, client)).or_default();
        figures.minute.add(at, MINUTE);
        figures.hour.add(at, HOUR);
        if is_refused {
            figures.refused.add(at, HOUR);
        }
        if is_ok {
            figures.ok.add(at, HOUR);
        }
    }

    /// The clients of a route.
    pub(super) fn clients(&self, route: u16) -> Vec<(IpAddr, &ClientFigures)> {
        let clients = self.clients.iter().filter(|((of, _), _)| *of == route);
        let mut clients: Vec<_> = clients.map(|((_, client), figures)| (*client, figures)).collect();
        clients.sort_by_key(|(client, _)| *client);
        clients
    }
}

impl Statuses {
    /// Rounded down.
    pub(super) fn percent(&self, part: u64) -> u64 {
        (part * 100).checked_div(self.total).unwrap_or_default()
    }
}

/// In seconds.
const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Pairs of a route and a client: about 150 bytes each.
const MOST_CLIENTS: usize = 400_000;
