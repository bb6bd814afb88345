//! The client of a request as its upstream knows it.

use std::net::IpAddr;
use std::sync::Arc;

use http::Version;

use crate::client::Identity;
use crate::listen::Connection;
use crate::upstream::Client;
use crate::upstream::OwnConnections;

/// Connections to servers that belong to a client are kept with its connection. Over HTTP/2 many requests share one, so that
/// an application that signs in connections would take one request for another's: there is none then.
pub(super) struct OneClient<'a> {
    pub(super) identity: &'a Identity,
    pub(super) connection: &'a Connection,
    /// Of the request.
    pub(super) version: Version,
}

impl Client for OneClient<'_> {
    fn address(&self) -> IpAddr {
        self.identity.client.address()
    }

    fn own_connections(&self) -> Option<Arc<OwnConnections>> {
        self.connection.kept()
    }

    fn own_connections_from_now_on(&self) -> Option<Arc<OwnConnections>> {
        if self.version == Version::HTTP_2 { None } else { self.connection.keep() }
    }
}
