//! Where a browser has opened a session.

use std::net::IpAddr;
use std::net::Ipv4Addr;

use axum::body::Body;
use http::Request;

use super::attempts::network;
use crate::admin::origin::PeerAddress;
use crate::admin::origin::host;

/// The address of a browser, and the host and port that it asked. A cookie that somebody has read is worth nothing elsewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::admin) struct SessionPlace {
    network: IpAddr,
    host: Option<Box<str>>,
}

impl SessionPlace {
    pub(in crate::admin) fn of(request: &Request<Body>) -> Self {
        Self { network: network(peer(request)), host: host(request).map(|host| host.to_ascii_lowercase().into()) }
    }
}

/// The address that sent the request.
pub(in crate::admin) fn peer(request: &Request<Body>) -> IpAddr {
    request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |PeerAddress(peer)| *peer)
}
