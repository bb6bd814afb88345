//! How much the clients of a route did.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::BinaryHeap;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;

use super::busy::Busy;
use crate::clock::Timestamp;
use crate::replay::AnsweredBy;
use crate::replay::LoggedRequest;

/// What is known of all clients, by the number of the route. Number 0 is for all requests.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) routes: Vec<Statuses>,
    /// The earlier routes that some of a route's requests take too. Their `outcome` is the one that counts.
    pub(super) earlier: Vec<BTreeSet<u16>>,
    clients: HashMap<(u16, IpAddr), ClientFigures>,
    /// The ends of the requests in progress, the earliest first.
    ends: BinaryHeap<Reverse<(Timestamp, u16, IpAddr)>>,
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

/// The requests of one client that the limits of one route count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientFigures {
    pub(super) minute: Busy,
    pub(super) hour: Busy,
    /// Those answered with 401 or 403, and those whose answer is unknown: they keep their slot.
    pub(super) refused: Busy,
    /// Those answered with 200, and those whose answer is unknown.
    pub(super) ok: Busy,
    /// Those of either kind.
    pub(super) refused_or_ok: Busy,
    in_progress: u32,
    /// The most that were in progress at a time. Each of them has a slot of a limit of failures until its answer is known.
    pub(super) most_in_progress: u32,
}

/// What is known of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    status: Option<StatusCode>,
    answered_by: AnsweredBy,
    duration: Duration,
}

impl Answer {
    pub(super) fn of(request: &LoggedRequest) -> Self {
        let duration = request.duration.unwrap_or_default();
        Self { status: request.status, answered_by: request.answered_by, duration }
    }

    /// Whether a limit of failures counts it, where these answers are failures.
    fn counts(self, is_failure: bool) -> bool {
        match (self.answered_by, self.status) {
            (AnsweredBy::NoApplication, _) => false,
            (AnsweredBy::Application, Some(_)) => is_failure,
            _ => true,
        }
    }
}

impl Figures {
    pub(super) fn new(routes: usize) -> Self {
        Self {
            routes: vec![Statuses::default(); routes + 1],
            earlier: vec![BTreeSet::new(); routes + 1],
            clients: HashMap::new(),
            ends: BinaryHeap::new(),
            is_cut: false,
        }
    }

    /// Adds a request, which is counted by the limits of all `routes`.
    pub(super) fn add(&mut self, routes: &[u16], client: IpAddr, at: Timestamp, answer: Answer) {
        self.end_until(at);
        self.add_to(0, client, at, answer);
        for (place, &route) in routes.iter().enumerate() {
            self.add_to(route, client, at, answer);
            self.earlier[usize::from(route)].extend(&routes[..place]);
        }
    }

    fn end_until(&mut self, at: Timestamp) {
        while let Some(Reverse((end, route, client))) = self.ends.peek().copied()
            && (end <= at || self.ends.len() > MOST_IN_PROGRESS)
        {
            self.ends.pop();
            if let Some(figures) = self.clients.get_mut(&(route, client)) {
                figures.in_progress -= 1;
            }
        }
    }

    fn add_to(&mut self, route: u16, client: IpAddr, at: Timestamp, answer: Answer) {
        let status = answer.status;
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
        figures.in_progress += 1;
        figures.most_in_progress = figures.most_in_progress.max(figures.in_progress);
        self.ends.push(Reverse((at + answer.duration, route, client)));
        for (busy, is_failure) in [
            (&mut figures.refused, is_refused),
            (&mut figures.ok, is_ok),
            (&mut figures.refused_or_ok, is_refused || is_ok),
        ] {
            if answer.counts(is_failure) {
                busy.add(at, HOUR);
            }
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

/// Pairs of a route and a client: about 180 bytes each.
const MOST_CLIENTS: usize = 400_000;

/// Of all clients together. Beyond it, the answers that end first end early.
const MOST_IN_PROGRESS: usize = 100_000;
