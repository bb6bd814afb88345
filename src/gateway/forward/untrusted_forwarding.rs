//! Warns about forwarding headers from peers that are no trusted proxies. The peer may be an attacker, or a proxy that
//! is missing in the configuration, whose clients then all count as one. Each header is logged once a day.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::warn;

use super::significant_headers::SignificantHeaders;
use crate::client::ClientIp;
use crate::clock::Timestamp;
use crate::head::Name;

/// Warns about a header that was removed from a request, at most once a day. Returns whether the header names a client.
pub(in crate::gateway) fn report(
    name: Name<'_>,
    significant_headers: &SignificantHeaders,
    peer: ClientIp,
    now: Timestamp,
) -> bool {
    let known = KINDS.iter().position(|kind| *kind == name.as_str());
    let Some(kind) = known.or_else(|| significant_headers.names_the_client(name).then_some(KINDS.len())) else {
        return false;
    };
    let silent_until = SILENT_UNTIL[kind].load(Ordering::Relaxed);
    let next = (now + INTERVAL).as_micros();
    let is_due = now.as_micros() >= silent_until;
    // Only one of several workers logs it.
    if is_due && SILENT_UNTIL[kind].compare_exchange(silent_until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        let (peer, name) = (peer.address(), name.as_str());
        warn!(
            %peer,
            header = name,
            setting = "client_ip.trusted_proxies",
            "{peer} sent {name} and is not in client_ip.trusted_proxies: the header is ignored; add the address if it is a proxy of yours"
        );
    }
    true
}

const INTERVAL: Duration = Duration::from_secs(86_400);

/// The headers in which proxies name their client. A configured header may be another one.
const KINDS: [&str; 9] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-envoy-external-address",
];

/// By header, in microseconds since the epoch. One for the process, as there is one log for the process.
static SILENT_UNTIL: [AtomicU64; KINDS.len() + 1] = [const { AtomicU64::new(0) }; KINDS.len() + 1];
