//! Connections to servers that belong to one client.
//!
//! NTLM and Negotiate sign in a connection and not a request ([RFC 4559], section 6): whoever sends a request over it acts as its
//! user. From the first such challenge or credentials on, a connection carries the requests of one client alone, and ends with it.
//!
//! [RFC 4559]: https://www.rfc-editor.org/rfc/rfc4559

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::http1::Http1Connection;
use super::open_connection::OpenConnection;
use super::servers::Upstream;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::NameSet;

/// Who sends a request.
pub trait Client: Sync {
    /// Matters where it decides which server is chosen.
    fn address(&self) -> IpAddr;

    /// The connections that belong to it, where there are any.
    fn own_connections(&self) -> Option<Arc<OwnConnections>>;

    /// The same for a client that gets its first one. `None`: its requests are not in order on one connection, so that none can
    /// belong to it.
    fn own_connections_from_now_on(&self) -> Option<Arc<OwnConnections>>;
}

/// The connections without a request that belong to one client. Those in use are with their answers.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "answers have them boxed, and give them back as they are")]
pub struct OwnConnections(Mutex<Vec<Box<Http1Connection>>>);

impl OwnConnections {
    /// The one to a server of this upstream, unless it has ended.
    pub(super) fn take(&self, upstream: &Upstream) -> Option<Box<Http1Connection>> {
        let servers = upstream.load_servers();
        let mut idle = self.0.lock();
        idle.retain_mut(|link| !link.server.removed.is_cancelled() && link.is_ready());
        let at = idle.iter().position(|link| servers.iter().any(|server| server.id == link.server.id))?;
        Some(idle.swap_remove(at))
    }

    /// Keeps a connection, if the client and the descriptors of the process have room for it.
    pub(super) fn put(&self, link: Box<Http1Connection>) {
        let mut idle = self.0.lock();
        if idle.len() < MOST && !OpenConnection::are_too_many() {
            idle.push(link);
        }
    }
}

/// Whether the head of a request or of an answer has credentials or a challenge of a scheme that signs in the connection.
pub(super) fn signs_connection_in(fields: &Fields) -> bool {
    // Most heads have none of these.
    fields.has_any(SIGNING_IN)
        && fields
            .among(SIGNING_IN)
            .flat_map(|name| fields.get_all(name))
            .flat_map(|line| line.split(|byte| *byte == b','))
            .filter_map(|challenge| challenge.trim_ascii_start().split(|byte| !byte.is_ascii_alphanumeric()).next())
            .any(|scheme| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

const SIGNING_IN: NameSet = NameSet::of(&[
    KnownName::AUTHORIZATION,
    KnownName::PROXY_AUTHORIZATION,
    KnownName::WWW_AUTHENTICATE,
    KnownName::PROXY_AUTHENTICATE,
]);

const SCHEMES: [&[u8]; 3] = [b"ntlm", b"negotiate", b"kerberos"];

/// A client of a few applications behind one gateway has one for each.
const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_sign_in_a_connection_are_known_however_they_are_written() {
        let signs_in = |name: KnownName, value: &str| signs_connection_in(&[(name, value)].into_iter().collect());
        for value in
            ["NTLM", "negotiate", "Negotiate oYG2", "NTLM TlRM", "Basic realm=\"a\", ntlm", "Basic realm=a,Negotiate"]
        {
            assert!(signs_in(KnownName::WWW_AUTHENTICATE, value), "{value}");
            assert!(signs_in(KnownName::AUTHORIZATION, value), "{value}");
        }
        for value in ["Basic bnRsbTo=", "Bearer ntlm", "Digest realm=\"NTLM\"", "NTLMx", ""] {
            assert!(!signs_in(KnownName::AUTHORIZATION, value), "{value}");
        }
        assert!(!signs_in(KnownName::COOKIE, "NTLM"));
    }
}
