//! Which server gets a request.

use std::sync::atomic::Ordering;

use super::Balance;
use super::Upstream;

impl Upstream {
    /// The server for the next request, by position, other than those tried; `None` when none of the rest is healthy.
    ///
    /// One that gave no connection a moment ago is chosen only when there is no other.
    pub(super) fn pick(&self, tried: &[usize]) -> Option<usize> {
        let count = self.servers.len();
        let start = match self.settings.balance {
            _ if count == 1 => 0,
            Balance::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed) % count,
            // Ties are broken by chance: every core would flock to the first of equals.
            Balance::LeastRequests => fastrand::usize(..count),
        };
        let candidates = (0..count).map(|step| (start + step) % count);
        let candidates = candidates.filter(|index| self.servers[*index].is_healthy() && !tried.contains(index));
        candidates.min_by_key(|index| {
            let server = &self.servers[*index];
            let load = match self.settings.balance {
                Balance::LeastRequests => server.in_flight(),
                Balance::RoundRobin => 0,
            };
            (server.rests(), load)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::upstream::HostHeader;
    use crate::upstream::Settings;
    use crate::upstream::Timeouts;

    fn upstream(balance: Balance, servers: usize) -> Arc<Upstream> {
        Upstream::new(Settings {
            name: "app".into(),
            servers: (0..servers).map(|index| format!("127.0.0.{}:80", index + 1).parse().unwrap()).collect(),
            balance,
            host: HostHeader::Preserve,
            timeouts: Timeouts::default(),
            health: None,
        })
    }

    #[test]
    fn round_robin_takes_one_after_the_other() {
        let upstream = upstream(Balance::RoundRobin, 3);
        let picks: Vec<_> = (0..6).map(|_| upstream.pick(&[]).unwrap()).collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn least_requests_takes_the_least_busy() {
        let upstream = upstream(Balance::LeastRequests, 3);
        let _zero = upstream.servers[0].begin();
        let _two = upstream.servers[2].begin();
        assert_eq!(upstream.pick(&[]), Some(1));
    }

    #[test]
    fn equals_all_get_their_share() {
        let upstream = upstream(Balance::LeastRequests, 3);
        let mut picks = [0; 3];
        (0..300).for_each(|_| picks[upstream.pick(&[]).unwrap()] += 1);
        assert!(picks.iter().all(|share| *share > 50), "{picks:?}");
    }

    #[test]
    fn an_unhealthy_server_gets_nothing() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers[0].set_healthy(false);
        assert_eq!([upstream.pick(&[]), upstream.pick(&[])], [Some(1), Some(1)]);
        upstream.servers[1].set_healthy(false);
        assert_eq!(upstream.pick(&[]), None);
    }

    #[test]
    fn a_server_that_gave_no_connection_is_the_last_choice_and_never_none() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers[0].rest();
        assert_eq!([upstream.pick(&[]), upstream.pick(&[])], [Some(1), Some(1)]);
        assert_eq!(upstream.pick(&[1]), Some(0));
        assert_eq!(upstream.pick(&[0, 1]), None);
    }
}
