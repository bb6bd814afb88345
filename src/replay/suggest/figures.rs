//! How much the clients of a route did.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;

use crate::replay::{AnsweredBy, LoggedRequest};
use crate::words::clock::Timestamp;

/// The statuses of what is not there.
pub(super) const NOT_THERE: [u16; 6] = [400, 404, 405, 410, 414, 501];

/// In seconds.
const MINUTE: u64 = 60;

const HOUR: u64 = 3600;

/// Pairs of a route and a client: about 220 bytes each.
const MOST_CLIENTS: usize = 400_000;

/// The bound for all clients together. Beyond it, the answers that end first are ended early.
const MOST_IN_PROGRESS: usize = 100_000;

/// The figures of all clients, by the number of the route. Number 0 is for all requests.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) routes: Vec<Statuses>,
    /// The earlier routes that some of a route's requests take too. Their `outcome` is the one that counts.
    pub(super) earlier: Vec<BTreeSet<u16>>,
    clients: HashMap<(u16, IpAddr), ClientFigures>,
    /// The clients that look like attackers: they count for no rate.
    pub(super) attackers: BTreeSet<IpAddr>,
    /// The ends of the requests in progress, the earliest first.
    ends: BinaryHeap<Reverse<(Timestamp, u16, IpAddr)>>,
    /// Whether there were more clients than are remembered.
    pub(super) is_cut: bool,
}

/// How the requests of a route, or those of one client, were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statuses {
    pub(super) total: u64,
    /// 401 and 403.
    pub(super) refused: u64,
    pub(super) redirects: u64,
    pub(super) ok: u64,
    /// What is not there.
    missing: u64,
}

/// The requests of one client that the limits of one route count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientFigures {
    statuses: Statuses,
    pub(super) minute: Busy,
    pub(super) hour: Busy,
    /// Requests answered with 401 or 403, and requests whose answer is unknown: they keep their slot.
    pub(super) refused: Busy,
    /// Requests answered with 200, and requests whose answer is unknown.
    pub(super) ok: Busy,
    /// Requests of either kind.
    pub(super) refused_or_ok: Busy,
    in_progress: u32,
    /// The most that were in progress at a time. Each of them has a slot of a limit of failures until its answer is known.
    pub(super) most_in_progress: u32,
}

/// The known facts of an answer.
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
            attackers: BTreeSet::new(),
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
        self.routes[usize::from(route)].add(status);
        if self.clients.len() >= MOST_CLIENTS && !self.clients.contains_key(&(route, client)) {
            self.is_cut = true;
            return;
        }
        let figures = self.clients.entry((route, client)).or_default();
        figures.statuses.add(status);
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

    /// Finds the clients that look like attackers, and takes their answers out of those of all. `logins` are routes.
    pub(super) fn leave_out_attackers(&mut self, logins: &[u16]) {
        let mut conducts: BTreeMap<IpAddr, Conduct> = BTreeMap::new();
        for ((route, client), ClientFigures { statuses, .. }) in &self.clients {
            if *route == 0 || logins.contains(route) {
                let is_form = self.routes[usize::from(*route)].shows_form_again();
                statuses.add_to(conducts.entry(*client).or_default(), *route != 0, is_form);
            }
        }
        self.attackers = attackers(&conducts);
        for ((route, client), ClientFigures { statuses, .. }) in &self.clients {
            if self.attackers.contains(client) {
                self.routes[usize::from(*route)].remove(statuses);
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
    fn add(&mut self, status: Option<StatusCode>) {
        let is_among = |codes: &[u16]| status.is_some_and(|status| codes.contains(&status.as_u16()));
        self.total += 1;
        self.refused += u64::from(is_among(&[401, 403]));
        self.redirects += u64::from(status.is_some_and(|status| status.is_redirection()));
        self.ok += u64::from(is_among(&[200]));
        self.missing += u64::from(is_among(&NOT_THERE));
    }

    fn remove(&mut self, other: &Self) {
        self.total -= other.total;
        self.refused -= other.refused;
        self.redirects -= other.redirects;
        self.ok -= other.ok;
        self.missing -= other.missing;
    }

    /// Whether a failed login seems to be answered with the form, with 200, and a success with a redirect.
    fn shows_form_again(&self) -> bool {
        self.redirects > 0 && self.ok > 0
    }

    /// Adds the answers that one client got on a login, or those to all of its requests.
    fn add_to(&self, conduct: &mut Conduct, is_login: bool, shows_form_again: bool) {
        if !is_login {
            conduct.requests += self.total;
            conduct.failures += self.refused;
            conduct.missing += self.missing;
            return;
        }
        conduct.logins += self.total;
        if shows_form_again {
            conduct.failures += self.ok;
            conduct.successes += self.redirects;
        } else {
            conduct.successes += self.redirects + self.ok;
        }
    }

    /// Rounded down.
    pub(super) fn percent(&self, part: u64) -> u64 {
        (part * 100).checked_div(self.total).unwrap_or_default()
    }
}

// Which clients look like attackers, by what they did and not by how much.

/// What one client did in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conduct {
    pub(super) requests: u64,
    /// Requests to logins.
    pub(super) logins: u64,
    /// Requests answered with 401 or 403, and logins answered as failures are.
    pub(super) failures: u64,
    /// Logins answered as successes are.
    pub(super) successes: u64,
    /// Requests for what is not there.
    pub(super) missing: u64,
}

/// So many failures are no forgotten password.
const MANY_FAILURES: u64 = 5;

/// A client that asks so often for what is not there does not follow links.
const MANY_MISSING: u64 = 10;

impl Conduct {
    fn looks_like_attack(&self) -> bool {
        let Self { requests, logins, failures, successes, missing } = *self;
        let fails = failures >= MANY_FAILURES && failures * 10 >= (failures + successes) * 9;
        // A browser fetches pages beside.
        let fails_and_leaves = failures > 0 && successes == 0 && failures * 2 > requests;
        let only_logs_in = logins > 0 && logins * 5 >= requests * 4;
        let scans = missing >= MANY_MISSING && missing * 5 >= requests * 4;
        fails || fails_and_leaves || only_logs_in || scans
    }
}

/// The clients that look like attackers. None, where they are more than a quarter: then such is the traffic of this log.
pub(super) fn attackers(conducts: &BTreeMap<IpAddr, Conduct>) -> BTreeSet<IpAddr> {
    let found = conducts.iter().filter(|(_, conduct)| conduct.looks_like_attack());
    let found: BTreeSet<_> = found.map(|(client, _)| *client).collect();
    if found.len() * 4 > conducts.len() { BTreeSet::new() } else { found }
}

// The busiest minute, or hour, of a client.

/// Counts by windows that are aligned. The moments come in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    window: u32,
    current: u32,
    previous: u32,
    /// The most in one window.
    pub(super) most: u32,
    /// The most in two consecutive windows. No window of that length has more, at any start.
    pub(super) most_anywhere: u32,
}

impl Busy {
    /// `length` is in seconds.
    pub(super) fn add(&mut self, at: Timestamp, length: u64) {
        let window = u32::try_from(at.as_micros() / 1_000_000 / length).unwrap_or(u32::MAX);
        if window != self.window {
            self.previous = if window == self.window.saturating_add(1) { self.current } else { 0 };
            (self.window, self.current) = (window, 0);
        }
        self.current = self.current.saturating_add(1);
        self.most = self.most.max(self.current);
        self.most_anywhere = self.most_anywhere.max(self.current.saturating_add(self.previous));
    }
}

impl Busy {
    /// Adds `more` requests that are in no window.
    pub(super) fn beside(self, more: u32) -> Self {
        Self { most_anywhere: self.most_anywhere.saturating_add(more), ..self }
    }
}

#[cfg(test)]
impl Busy {
    pub(super) fn of(most: u32, most_anywhere: u32) -> Self {
        Self { most, most_anywhere, ..Self::default() }
    }
}

// How much a limit must let pass, by what clients did. Whoever attacks is among them, so no figure of the busiest counts, nor
// one of a few: a tenth of the clients must not move the rate.

/// A rate is so many times what an ordinary client did.
const HEADROOM: f64 = 10.0;

/// A rate lets this share of the clients pass, with room for half as much again.
const PASSING: f64 = 0.8;

const ROOM: f64 = 1.5;

const FEW: usize = 10;

/// The ordinary clients, by their places from the quietest on: those around the quarter. The busiest tenth, whoever that is,
/// moves these least.
const ORDINARY: [f64; 2] = [0.15, 0.35];

/// A proposed rate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SuggestedRate {
    /// In each window.
    pub(super) count: u64,
    /// The most that 99 of 100 clients did in one window, without attackers.
    pub(super) usual: u32,
    /// The most that any client did in one window.
    pub(super) most: u32,
    /// The clients that did more than the rate lets pass, busiest first.
    pub(super) beyond: Vec<(IpAddr, u32)>,
}

/// A rate with headroom for ordinary clients. `None`: there is no client.
pub(super) fn suggest(clients: &[(IpAddr, Busy)], attackers: &BTreeSet<IpAddr>, least: u64) -> Option<SuggestedRate> {
    let active = || clients.iter().filter(|(_, busy)| busy.most > 0);
    let max = active().map(|(_, busy)| busy.most).max()?;
    let mut ordinary: Vec<Busy> =
        active().filter(|(client, _)| !attackers.contains(client)).map(|(_, busy)| *busy).collect();
    if ordinary.is_empty() {
        ordinary = active().map(|(_, busy)| *busy).collect();
    }
    let mut count = rate_for(&mut ordinary, least);
    // Those beyond the rate do not count for it either.
    loop {
        let before = ordinary.len();
        ordinary.retain(|busy| u64::from(busy.most_anywhere) <= count);
        if ordinary.len() == before || ordinary.is_empty() {
            break;
        }
        count = rate_for(&mut ordinary, least);
    }
    let mut most: Vec<u32> = ordinary.iter().map(|busy| busy.most).collect();
    most.sort_unstable();
    let usual = most.get((most.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(max);
    let beyond = clients.iter().filter(|(_, busy)| u64::from(busy.most_anywhere) > count);
    let mut beyond: Vec<_> = beyond.map(|(client, busy)| (*client, busy.most)).collect();
    beyond.sort_by_key(|(client, most)| (Reverse(*most), *client));
    Some(SuggestedRate { count, usual, most: max, beyond })
}

/// A rate for these clients, of which there is at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a length, and counts of requests"
)]
#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn rate_for(clients: &mut [Busy], least: u64) -> u64 {
    let length = clients.len() as f64;
    clients.sort_unstable_by_key(|busy| busy.most);
    let [from, to] = [(length * ORDINARY[0]).floor() as usize, (length * ORDINARY[1]).ceil() as usize];
    let quarter = &clients[from..to];
    let sum: f64 =
        quarter.iter().map(|busy| (f64::from(busy.most) * HEADROOM).max(f64::from(busy.most_anywhere))).sum();
    let of_quarter = sum / quarter.len() as f64;
    clients.sort_unstable_by_key(|busy| busy.most_anywhere);
    let passing = clients[(length * PASSING).ceil() as usize - 1].most_anywhere;
    let needed = of_quarter.max(f64::from(passing) * ROOM);
    // Among so few clients nobody is a tenth: more than all of them need is no headroom for anybody.
    let busiest = clients.iter().map(|busy| (f64::from(busy.most) * ROOM).max(f64::from(busy.most_anywhere)));
    let needed = if clients.len() < FEW { needed.min(busiest.fold(0.0, f64::max)) } else { needed };
    let needed = needed.ceil() as u64;
    round(needed.max(least))
}

/// Up to a number with few digits. The steps are small, at most one in forty of a hundred and more, because a rate must not jump where a few
/// clients make a small difference.
pub(super) fn round(count: u64) -> u64 {
    let mut unit = 1;
    while count >= unit * 100 {
        unit *= 10;
    }
    // Two digits, and the second of them only as exact as needed.
    let step = match count / unit {
        10..20 => unit / 5,
        20..50 => unit / 2,
        _ => unit,
    };
    count.next_multiple_of(step.max(1))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn clients(most: &[u32]) -> Vec<(IpAddr, Busy)> {
        let client = |(number, most): (usize, &u32)| {
            let address = Ipv4Addr::from(u32::try_from(number).unwrap() + 1);
            (IpAddr::from(address), Busy::of(*most, *most + 1))
        };
        most.iter().enumerate().map(client).collect()
    }

    fn propose(clients: &[(IpAddr, Busy)], least: u64) -> SuggestedRate {
        suggest(clients, &BTreeSet::new(), least).unwrap()
    }

    #[test]
    fn most_clients_have_room_where_many_do_much() {
        let most = [vec![1; 60], vec![100; 40]].concat();
        let rate = propose(&clients(&most), 5);
        assert_eq!((rate.count, rate.beyond.len()), (152, 0));
    }

    proptest! {
        /// Whatever a tenth of the clients do, in whatever way the others differ.
        #[test]
        fn a_tenth_of_the_clients_moves_a_rate_by_at_most_a_tenth(
            usual in 3.0..40.0_f64,
            spread in 0.1..0.6_f64,
            attack in 40_u32..20_000,
            seed in any::<u64>(),
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut most = |_| {
                let normal: f64 = std::iter::repeat_with(|| random.f64()).take(12).sum::<f64>() - 6.0;
                format!("{:.0}", (usual * (normal * spread).exp()).max(1.0)).parse().unwrap()
            };
            let ordinary: Vec<u32> = (0..300).map(&mut most).collect();
            let attacking = (0..33).map(|number| attack + number);
            let attacked: Vec<u32> = ordinary.iter().copied().chain(attacking).collect();
            let [before, after] = [&ordinary, &attacked].map(|most| propose(&clients(most), 5).count);
            prop_assert!(after * 10 <= before * 11 && after * 10 >= before * 9, "{before} and {after}");
        }
    }

    #[test]
    fn every_client_has_room_where_none_stands_out() {
        let rate = propose(&clients(&[1, 2, 3, 8]), 5);
        assert_eq!((rate.count, rate.usual, rate.most, rate.beyond.len()), (12, 8, 8, 0));
    }

    #[test]
    fn one_that_did_far_more_than_all_others_is_named() {
        let mut most = vec![4; 20];
        most.push(5000);
        let rate = propose(&clients(&most), 5);
        assert_eq!((rate.count, rate.usual, rate.most), (40, 4, 5000));
        assert_eq!(rate.beyond, [(IpAddr::from(Ipv4Addr::from(21)), 5000)]);
    }

    #[test]
    fn without_clients_there_is_no_rate() {
        assert_eq!(suggest(&[], &BTreeSet::new(), 5), None);
    }

    #[test]
    fn rates_are_round_and_never_lower() {
        for (count, expected) in [(1, 1), (11, 11), (61, 61), (101, 102), (301, 305), (601, 610), (1234, 1240)] {
            assert_eq!(round(count), expected);
        }
    }

    #[test]
    fn a_burst_around_the_end_of_a_window_is_seen_whole() {
        let mut busy = Busy::default();
        for second in [0, 58, 59, 60, 61, 62, 300] {
            busy.add(Timestamp::from_micros(second * 1_000_000), 60);
        }
        assert_eq!((busy.most, busy.most_anywhere), (3, 6));
    }
}
