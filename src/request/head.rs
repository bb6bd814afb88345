//! The head of a request as rules see it.

use std::fmt;

use http::HeaderMap;
use http::Method;
use http::request::Parts;

use super::host::CanonicalHost;
use super::path::RequestPath;
use crate::client::ClientIp;

/// The parts of a head that rules need. Borrows from the request it was read from.
pub struct RequestHead<'r> {
    pub method: &'r Method,
    pub host: CanonicalHost<'r>,
    pub path: RequestPath<'r>,
    /// The query as it came, without `?`; empty when there is none.
    pub query: &'r str,
    pub headers: &'r HeaderMap,
    pub client: ClientIp,
}

impl<'r> RequestHead<'r> {
    /// Reads what rules need. `authority` is the one host the request is for, settled by framing checks
    /// (absolute target, `:authority` or `Host`), as it came: with its port, if any.
    pub fn read(parts: &'r Parts, authority: &'r str, client: ClientIp) -> Self {
        Self {
            method: &parts.method,
            host: CanonicalHost::new(authority),
            path: RequestPath::new(parts.uri.path()),
            query: parts.uri.query().unwrap_or_default(),
            headers: &parts.headers,
            client,
        }
    }
}

/// Headers and queries hold tokens, so neither is shown.
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
