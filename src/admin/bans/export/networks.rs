//! Sorts banned networks and writes them as text.

use std::time::Duration;

use ipnet::IpNet;

/// Sorted, without networks that lie within others. Neighbours are not merged, so that each ban can be found as it was
/// set.
pub(super) fn outermost(banned: &[(IpNet, Duration)]) -> Vec<IpNet> {
    let mut networks: Vec<IpNet> = banned.iter().map(|(network, _)| network.trunc()).collect();
    // A network sorts before those within it.
    networks.sort_unstable_by_key(|network| (network.network(), network.prefix_len()));
    networks.dedup_by(|next, kept| kept.contains(&*next));
    networks
}

/// A network as text, a single address without its prefix.
pub(super) fn short(network: &IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() { network.addr().to_string() } else { network.to_string() }
}
