//! Chooses the server for a request.

use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use siphasher::sip::SipHasher13;

use super::server::FULL_SHARE;
use super::server::Server;
use super::server::ServerId;
use super::servers::Upstream;
use super::settings::Balance;

impl Upstream {
    /// The server for the next attempt, none of those tried. `None`: no other server is healthy.
    ///
    /// A server that backs off is chosen only when there is no other. A server in its slow start is chosen less often.
    pub(super) fn pick(&self, tried: &[ServerId], client: IpAddr) -> Option<Arc<Server>> {
        let servers = self.load_servers();
        loop {
            let (rank, chosen) = self.first(&servers, tried, client)?;
            if self.settings.balance == Balance::RoundRobin {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
                // Another core has just chosen this server: the next server is to be chosen.
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
            // Begins anywhere: otherwise every core would choose the first of equals.
            Balance::LeastRequests if count > 1 => fastrand::usize(..count),
            Balance::LeastRequests | Balance::RoundRobin | Balance::ClientIp => 0,
        };
        let candidates = (0..count).map(|step| &servers[(start + step) % count]);
        let candidates = candidates.filter(|server| server.is_healthy() && !tried.contains(&server.id));
        let ranked = candidates.map(|server| {
            let share = server.slow_start_share();
            let (is_skipped, load) = match self.settings.balance {
                Balance::LeastRequests => (is_skipped(share), server.in_flight() as u64),
                // The server that has waited longest: what one server does not get, the others share evenly.
                Balance::RoundRobin => (is_skipped(share), server.turn.load(Ordering::Relaxed)),
                Balance::ClientIp => {
                    let weight = weight(server, client);
                    // Always the same clients wait, so that each moves back to its server once.
                    (weight % u64::from(FULL_SHARE) >= u64::from(share), u64::MAX - weight)
                }
            };
            (Rank { backs_off: server.backs_off(), is_skipped, load }, server)
        });
        ranked.min_by_key(|(rank, _)| *rank)
    }

    /// Whether there is a healthy server other than those tried.
    pub(super) fn has_other(&self, tried: &[ServerId]) -> bool {
        self.load_servers().iter().any(|server| server.is_healthy() && !tried.contains(&server.id))
    }
}

/// The reasons against a server, the strongest first.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Rank {
    backs_off: bool,
    is_skipped: bool,
    load: u64,
}

/// Whether a server in its slow start leaves this request to the others.
fn is_skipped(share: u16) -> bool {
    share < FULL_SHARE && fastrand::u16(..FULL_SHARE) >= share
}

/// Rendezvous hashing: a client goes to the server with the highest weight. It is the same on every gateway and after every
/// start, and only the clients of a server that leaves move.
fn weight(server: &Server, client: IpAddr) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(server.name().as_bytes());
    if let Some(address) = server.resolved() {
        hasher.write(address.to_string().as_bytes());
    }
    match client {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        // A client has a whole /64, and changes addresses in it.
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
            max_idle: None,
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
        upstream.servers()[2].note_not_connected(&FailureCause::ConnectTimeout);
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
        let _zero = upstream.servers()[0].begin_request();
        let _two = upstream.servers()[2].begin_request();
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
        upstream.servers()[0].note_not_connected(&FailureCause::ConnectTimeout);
        assert_eq!([(); 2].map(|()| pick(&upstream, &[], CLIENT)), [Some(1), Some(1)]);
        assert_eq!(pick(&upstream, &[1], CLIENT), Some(0));
        assert_eq!(pick(&upstream, &[0, 1], CLIENT), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_request_finds_out_whether_a_server_is_back() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].note_not_connected(&FailureCause::ConnectTimeout);
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
