//! The head of a request as rules see it.

use std::fmt;

use http::Method;

use super::host::CanonicalHost;
use super::path::RequestPath;
use super::query::RequestQuery;
use crate::client::ClientIp;
use crate::client::Reputation;
use crate::head;
use crate::head::Fields;

/// The parts of a head that rules need. Borrows from the request it was read from.
pub struct RequestHead<'r> {
    pub method: &'r Method,
    pub host: CanonicalHost<'r>,
    pub path: RequestPath<'r>,
    pub query: RequestQuery<'r>,
    pub fields: &'r Fields,
    pub client: ClientIp,
    /// What the lists that follow a source say of the client.
    pub reputation: Reputation,
}

impl<'r> RequestHead<'r> {
    /// Reads what rules need. Framing checks have settled the one host that the request is for (absolute target,
    /// `:authority` or `Host`).
    pub fn read(head: &'r head::RequestHead, client: ClientIp) -> Self {
        let (path, query) = head.target();
        Self {
            method: &head.method,
            host: CanonicalHost::new(head.host()),
            path: RequestPath::new(path),
            query: RequestQuery::new(path, query),
            fields: &head.fields,
            client,
            reputation: Reputation::default(),
        }
    }

    /// The same for a client of which something is known.
    #[must_use]
    pub fn with_reputation(self, reputation: Reputation) -> Self {
        Self { reputation, ..self }
    }
}

/// Fields and queries hold tokens, so neither is shown.
impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
