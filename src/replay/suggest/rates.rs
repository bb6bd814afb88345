//! How much a limit must let pass, by what clients did.

use std::net::IpAddr;

use super::busy::Busy;

/// A proposed rate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SuggestedRate {
    /// In each window.
    pub(super) count: u64,
    /// The most that 99 of 100 clients did in one window.
    pub(super) usual: u32,
    /// The most that any client did in one window.
    pub(super) most: u32,
    /// The clients that did more than the rate lets pass, busiest first.
    pub(super) beyond: Vec<(IpAddr, u32)>,
}

/// A rate with headroom for all clients, or, where a few did far more than all others, for the others. `None`: there
/// is no client.
pub(super) fn suggest(clients: &[(IpAddr, Busy)], least: u64) -> Option<SuggestedRate> {
    let mut most: Vec<u32> = clients.iter().map(|(_, busy)| busy.most).filter(|most| *most > 0).collect();
    most.sort_unstable();
    let (&usual, &max) = (most.get(usual_place(most.len()))?, most.last()?);
    let count = if u64::from(max) <= FAR * u64::from(usual.max(SMALL)) {
        // Windows may begin anywhere.
        let anywhere = clients.iter().map(|(_, busy)| busy.most_anywhere).max().unwrap_or_default();
        u64::from(anywhere).max(u64::from(max) * 3 / 2)
    } else {
        u64::from(usual) * 3
    };
    let count = round(count.max(least));
    let beyond = clients.iter().filter(|(_, busy)| u64::from(busy.most_anywhere) > count);
    let mut beyond: Vec<_> = beyond.map(|(client, busy)| (*client, busy.most)).collect();
    beyond.sort_by_key(|(client, most)| (std::cmp::Reverse(*most), *client));
    Some(SuggestedRate { count, usual, most: max, beyond })
}

/// The place of the 99th percentile. One client of ten or more may be unusual.
fn usual_place(clients: usize) -> usize {
    let place = (clients * 99).div_ceil(100).saturating_sub(1);
    if clients >= 10 { place.min(clients - 2) } else { place }
}

/// Up to a number that people choose.
pub(super) fn round(count: u64) -> u64 {
    let mut unit = 1;
    loop {
        if let Some(step) = STEPS.iter().find(|step| **step * unit >= count) {
            return step * unit;
        }
        unit *= 10;
    }
}

const STEPS: [u64; 9] = [10, 12, 15, 20, 25, 30, 40, 50, 60];

/// Clients that did more than this many times what is usual are not what a limit is for.
const FAR: u64 = 4;

/// Among clients with so few requests, a few more are not unusual.
const SMALL: u32 = 5;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn clients(most: &[u32]) -> Vec<(IpAddr, Busy)> {
        let client = |(number, most): (usize, &u32)| {
            let address = Ipv4Addr::from(u32::try_from(number).unwrap() + 1);
            (IpAddr::from(address), Busy::of(*most, *most + 1))
        };
        most.iter().enumerate().map(client).collect()
    }

    #[test]
    fn every_client_has_room_where_none_stands_out() {
        let rate = suggest(&clients(&[1, 2, 3, 8]), 5).unwrap();
        assert_eq!((rate.count, rate.usual, rate.most, rate.beyond.len()), (12, 8, 8, 0));
    }

    #[test]
    fn one_that_did_far_more_than_all_others_is_named() {
        let mut most = vec![4; 20];
        most.push(5000);
        let rate = suggest(&clients(&most), 5).unwrap();
        assert_eq!((rate.count, rate.usual, rate.most), (12, 4, 5000));
        assert_eq!(rate.beyond, [(IpAddr::from(Ipv4Addr::from(21)), 5000)]);
    }

    #[test]
    fn without_clients_there_is_no_rate() {
        assert_eq!(suggest(&[], 5), None);
    }

    #[test]
    fn rates_are_round_and_never_lower() {
        for (count, expected) in [(1, 10), (11, 12), (61, 100), (601, 1000), (1234, 1500)] {
            assert_eq!(round(count), expected);
        }
    }
}
