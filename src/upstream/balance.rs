//! Which server gets a request.

use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use siphasher::sip::SipHasher13;

use super::Balance;
use super::Server;
use super::Upstream;
use super::server::FULL;
use super::server::ServerId;

impl Upstream {
    /// The server for the next request, other than those tried; `None` when none of the rest is healthy.
    ///
    /// One that gave no connection a moment ago is chosen only when there is no other, and one that has just returned
    /// not every time that it could be.
    pub(super) fn pick(&self, tried: &[ServerId], client: IpAddr) -> Option<Arc<Server>> {
        let servers = self.servers.load();
        loop {
            let (rank, chosen) = self.first(&servers, tried, client)?;
            if self.settings.balance == Balance::RoundRobin {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
                // Another core has just chosen it: it is the next one's turn.
                if chosen.turn.compare_exchange(rank.load, turn, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                    continue;
                }
            }
            chosen.note_chosen();
            return Some(Arc::clone(chosen));
        }
    }

    fn first<'s>(
        &self,
        servers: &'s [Arc<Server>],
        tried: &[ServerId],
        client: IpAddr,
    ) -> Option<(Rank, &'s Arc<Server>)> {
        let count = servers.len();
        let start = match self.settings.balance {
            // Ties are broken by chance: every core would flock to the first of equals.
            Balance::LeastRequests if count > 1 => fastrand::usize(..count),
            Balance::LeastRequests | Balance::RoundRobin | Balance::ClientIp => 0,
        };
        let candidates = (0..count).map(|step| &servers[(start + step) % count]);
        let candidates = candidates.filter(|server| server.is_healthy() && !tried.contains(&server.id));
        let ranked = candidates.map(|server| {
            let warmth = server.warmth();
            let (is_held_back, load) = match self.settings.balance {
                Balance::LeastRequests => (is_held_back(warmth), server.in_flight() as u64),
                // Whoever waits longest, so that the others share alike what one of them does not get.
                Balance::RoundRobin => (is_held_back(warmth), server.turn.load(Ordering::Relaxed)),
                Balance::ClientIp => {
                    let weight = weight(server, client);
                    // Always the same clients wait: each comes back once.
                    (weight % u64::from(FULL) >= u64::from(warmth), u64::MAX - weight)
                }
            };
            (Rank { rests: server.rests(), is_held_back, load }, server)
        });
        ranked.min_by_key(|(rank, _)| *rank)
    }

    /// Whether there is a healthy server other than those tried.
    pub(super) fn has_other(&self, tried: &[ServerId]) -> bool {
        self.servers.load().iter().any(|server| server.is_healthy() && !tried.contains(&server.id))
    }
}

/// What speaks against a server, the gravest first.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Rank {
    rests: bool,
    is_held_back: bool,
    load: u64,
}

fn is_held_back(warmth: u16) -> bool {
    warmth < FULL && fastrand::u16(..FULL) >= warmth
}

/// How well a client and a server go together. The same on every gateway and after every start; when a server leaves,
/// the order of the others is what it was, so that only its own clients move.
fn weight(server: &Server, client: IpAddr) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(server.name().as_bytes());
    if let Some(address) = server.resolved() {
        hasher.write(address.to_string().as_bytes());
    }
    match client {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        // One client has the whole network, and changes addresses in it.
        IpAddr::V6(address) => hasher.write(&address.octets()[..8]),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::uri::Authority;

    use super::*;
    use crate::upstream::HeadBounds;
    use crate::upstream::HostHeader;
    use crate::upstream::ServerVerification;
    use crate::upstream::Settings;
    use crate::upstream::Timeouts;
    use crate::upstream::error::FailureCause;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn upstream(balance: Balance, servers: usize) -> Arc<Upstream> {
        Upstream::new(Settings {
            name: "app".into(),
            servers: (0..servers)
                .map(|index| format!("127.0.0.{}:80", index + 1).parse::<Authority>().unwrap().into())
                .collect(),
            balance,
            host: HostHeader::Preserve,
            timeouts: Timeouts::default(),
            heads: HeadBounds::default(),
            health: None,
            tls: ServerVerification::default(),
            http2: false,
        })
    }

    /// The position of the server that is picked.
    fn pick(upstream: &Upstream, tried: &[usize], client: IpAddr) -> Option<usize> {
        let servers = upstream.servers();
        let tried: Vec<ServerId> = tried.iter().map(|index| servers[*index].id).collect();
        let picked = upstream.pick(&tried, client)?;
        servers.iter().position(|server| server.id == picked.id)
    }

    #[test]
    fn round_robin_takes_one_after_the_other() {
        let upstream = upstream(Balance::RoundRobin, 3);
        let picks: Vec<_> = (0..6).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn round_robin_without_one_of_three_is_even() {
        let upstream = upstream(Balance::RoundRobin, 3);
        upstream.servers()[2].rest(&FailureCause::ConnectTimeout);
        let picks: Vec<_> = (0..6).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks, [0, 1, 0, 1, 0, 1]);
        let settings = Settings {
            timeouts: Timeouts { idle: Duration::ZERO, ..Timeouts::default() },
            ..upstream.settings.clone()
        };
        let upstream = Upstream::carry_over(settings, &[upstream]);
        let picks: Vec<_> = (0..6).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn round_robin_is_even_when_many_choose_at_once() {
        let upstream = upstream(Balance::RoundRobin, 3);
        let picks: Vec<usize> = std::thread::scope(|scope| {
            let choose = || (0..300).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(choose)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for server in 0..3 {
            let share = picks.iter().filter(|index| **index == server).count();
            assert!((396..=404).contains(&share), "{share}");
        }
    }

    #[test]
    fn least_requests_takes_the_least_busy() {
        let upstream = upstream(Balance::LeastRequests, 3);
        let _zero = upstream.servers()[0].begin();
        let _two = upstream.servers()[2].begin();
        assert_eq!(pick(&upstream, &[], CLIENT), Some(1));
    }

    #[test]
    fn equals_all_get_their_share() {
        let upstream = upstream(Balance::LeastRequests, 3);
        let mut picks = [0; 3];
        (0..300).for_each(|_| picks[pick(&upstream, &[], CLIENT).unwrap()] += 1);
        assert!(picks.iter().all(|share| *share > 50), "{picks:?}");
    }

    #[test]
    fn an_unhealthy_server_gets_nothing() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].set_healthy(false);
        assert_eq!([(); 2].map(|()| pick(&upstream, &[], CLIENT)), [Some(1), Some(1)]);
        upstream.servers()[1].set_healthy(false);
        assert_eq!(pick(&upstream, &[], CLIENT), None);
    }

    #[test]
    fn a_server_that_gave_no_connection_is_the_last_choice_and_never_none() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].rest(&FailureCause::ConnectTimeout);
        assert_eq!([(); 2].map(|()| pick(&upstream, &[], CLIENT)), [Some(1), Some(1)]);
        assert_eq!(pick(&upstream, &[1], CLIENT), Some(0));
        assert_eq!(pick(&upstream, &[0, 1], CLIENT), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_request_finds_out_whether_a_server_is_back() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].rest(&FailureCause::ConnectTimeout);
        tokio::time::advance(Duration::from_millis(1100)).await;
        let picks: Vec<_> = (0..10).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks.iter().filter(|index| **index == 0).count(), 1, "{picks:?}");
        upstream.servers()[0].note_connected();
        let picks: Vec<_> = (0..10).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks.iter().filter(|index| **index == 0).count(), 5, "{picks:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_returned_gets_more_and_more() {
        let upstream = upstream(Balance::LeastRequests, 2);
        upstream.servers()[0].set_healthy(false);
        upstream.servers()[0].set_healthy(true);
        let share = || (0..1000).filter(|_| pick(&upstream, &[], CLIENT) == Some(0)).count();
        let shares = [
            share(),
            {
                tokio::time::advance(Duration::from_secs(5)).await;
                share()
            },
            {
                tokio::time::advance(Duration::from_secs(6)).await;
                share()
            },
        ];
        assert!((10..150).contains(&shares[0]), "{shares:?}");
        assert!((150..400).contains(&shares[1]), "{shares:?}");
        assert!((400..600).contains(&shares[2]), "{shares:?}");
    }

    #[test]
    fn a_client_stays_with_its_server_and_only_those_of_one_that_leaves_move() {
        let upstream = upstream(Balance::ClientIp, 4);
        let clients: Vec<IpAddr> =
            (0..1000_u32).map(|index| std::net::Ipv4Addr::from(0x0a00_0000 + index).into()).collect();
        let all = || -> Vec<usize> { clients.iter().map(|client| pick(&upstream, &[], *client).unwrap()).collect() };
        let before = all();
        assert_eq!(before, all());
        for server in 0..4 {
            let share = before.iter().filter(|index| **index == server).count();
            assert!((150..350).contains(&share), "{share}");
        }
        upstream.servers()[2].set_healthy(false);
        let without = all();
        for (before, after) in before.iter().zip(&without) {
            assert!(if *before == 2 { *after != 2 } else { before == after });
        }
    }

    #[test]
    fn a_client_has_its_whole_network_of_ipv6() {
        let upstream = upstream(Balance::ClientIp, 8);
        let picks = |address: &str| pick(&upstream, &[], address.parse().unwrap());
        assert_eq!(picks("2001:db8::1"), picks("2001:db8::ffff:2"));
    }
}
