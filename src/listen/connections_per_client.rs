//! Bounds the connections of one client. Connections use this table only if such a bound is set, when they open and when
//! they close.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Connections by client.
#[derive(Debug, Default)]
pub(super) struct ConnectionsPerClient {
    counts: Mutex<HashMap<IpAddr, usize>>,
}

impl ConnectionsPerClient {
    /// Counts one more connection of a client, unless it has `max` already.
    pub(super) fn enter(table: &Arc<Self>, address: IpAddr, max: usize) -> Option<ClientPermit> {
        let client = client(address);
        let mut counts = table.counts.lock();
        let count = counts.entry(client).or_insert(0);
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(ClientPermit { table: Arc::clone(table), client })
    }
}

/// A counted connection.
#[derive(Debug)]
pub(super) struct ClientPermit {
    table: Arc<ConnectionsPerClient>,
    client: IpAddr,
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.table.counts.lock().entry(self.client) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// An IPv4 address is one client; of IPv6 a /64 is, because a client with one address of it has them all.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: &str, second: &str, same_client: bool) {
        let table = Arc::default();
        let _first = ConnectionsPerClient::enter(&table, first.parse().unwrap(), 1).unwrap();
        assert_eq!(ConnectionsPerClient::enter(&table, second.parse().unwrap(), 1).is_none(), same_client);
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        check("192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
        check("192.0.2.1", "::ffff:192.0.2.1", true);
        check("2001:db8::1", "2001:db8::ffff", true);
        check("2001:db8::1", "2001:db8:0:1::1", false);
    }

    #[test]
    fn a_closed_connection_makes_room_and_leaves_nothing_behind() {
        let table = Arc::default();
        let address = "192.0.2.1".parse().unwrap();
        drop(ConnectionsPerClient::enter(&table, address, 1).unwrap());

        assert!(table.counts.lock().is_empty());
        assert!(ConnectionsPerClient::enter(&table, address, 1).is_some());
    }
}
