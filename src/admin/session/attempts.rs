//! Bounds how often an address may try a token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The failed attempts of the last minute, by address. The one that failed longest ago makes room for another.
#[derive(Debug, Default)]
pub(in crate::admin) struct FailedAttempts {
    failed: Mutex<HashMap<IpAddr, Failures>>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    first: Instant,
}

impl FailedAttempts {
    /// How long this address must wait before it may try again. `None`: it may try now.
    pub(in crate::admin) fn wait(&self, peer: IpAddr, now: Instant) -> Option<Duration> {
        let failures = *self.failed.lock().get(&network(peer))?;
        let age = now.duration_since(failures.first);
        (failures.count >= MAX_FAILURES).then(|| WINDOW.checked_sub(age))?.filter(|wait| !wait.is_zero())
    }

    pub(in crate::admin) fn add(&self, peer: IpAddr, now: Instant) {
        let mut failed = self.failed.lock();
        failed.retain(|_, failures| now.duration_since(failures.first) < WINDOW);
        if failed.len() >= MAX_ADDRESSES
            && let Some(oldest) = failed.iter().min_by_key(|(_, failures)| failures.first).map(|(peer, _)| *peer)
        {
            failed.remove(&oldest);
        }
        failed.entry(network(peer)).or_insert(Failures { count: 0, first: now }).count += 1;
    }
}

/// One client has a whole /64 of IPv6 addresses.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Failed attempts of one address in one minute.
const MAX_FAILURES: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);

const MAX_ADDRESSES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_failed_often_waits_for_the_rest_of_the_minute() {
        let (attempts, now) = (FailedAttempts::default(), Instant::now());
        let peer = |text: &str| text.parse::<IpAddr>().unwrap();
        let wait = |text: &str, second| attempts.wait(peer(text), now + Duration::from_secs(second));
        for second in 0..5 {
            assert_eq!(wait("2001:db8::1", second), None);
            attempts.add(peer("2001:db8::1"), now + Duration::from_secs(second));
        }
        assert_eq!(wait("2001:db8::2", 10), Some(Duration::from_secs(50)));
        assert_eq!(wait("2001:db8:0:1::1", 10), None);
        assert_eq!(wait("2001:db8::1", 60), None);
        attempts.add(peer("2001:db8::1"), now + Duration::from_secs(61));
        assert_eq!(wait("2001:db8::1", 61), None);
    }

    #[test]
    fn many_addresses_do_not_grow_the_table() {
        let (attempts, now) = (FailedAttempts::default(), Instant::now());
        for number in 0..2 * u32::try_from(MAX_ADDRESSES).unwrap() {
            attempts.add(std::net::Ipv4Addr::from_bits(number).into(), now);
        }
        assert_eq!(attempts.failed.lock().len(), MAX_ADDRESSES);
    }
}
