//! Headers that say who asks, from peers that are not believed. Perhaps a client tries its luck, perhaps a proxy is
//! missing in the configuration, and all of its clients are counted as one: once a day the log says so.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderName;
use tracing::warn;

use super::header_names::SignificantHeaders;
use crate::client::ClientIp;
use crate::clock::Timestamp;

/// Takes note of a field that was taken away from a request.
pub(in crate::gateway) fn report(
    name: &HeaderName,
    significant_headers: &SignificantHeaders,
    peer: ClientIp,
    now: Timestamp,
) {
    let known = KINDS.iter().position(|kind| *kind == name.as_str());
    let Some(kind) = known.or_else(|| significant_headers.says_who_asks(name).then_some(KINDS.len())) else { return };
    let silent_until = SILENT_UNTIL[kind].load(Ordering::Relaxed);
    let next = (now + EVERY).as_micros();
    let is_due = now.as_micros() >= silent_until;
    // Of several cores one says it.
    if is_due && SILENT_UNTIL[kind].compare_exchange(silent_until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        let peer = peer.address();
        warn!(
            %peer,
            header = name.as_str(),
            setting = "client_ip.trusted_proxies",
            "{peer} sent {name} and is not in client_ip.trusted_proxies: the header is ignored; add the address if it is a proxy of yours"
        );
    }
}

const EVERY: Duration = Duration::from_secs(86_400);

/// Fields that proxies name their client in. The one that is configured may be another.
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

/// By kind, in microseconds since the epoch. The log is the process's own, and so is what it has said.
static SILENT_UNTIL: [AtomicU64; KINDS.len() + 1] = [const { AtomicU64::new(0) }; KINDS.len() + 1];
