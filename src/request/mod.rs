//! What is asked for, in canonical form, so that no spelling of a request slips past a rule.

mod content_type;
pub(crate) mod encoding;
pub mod fields;
pub mod header;
pub mod host;
pub(crate) mod json;
pub mod method;
pub(crate) mod multipart;
mod name;
pub mod nul;
pub mod path;
mod percent;
pub mod query;
pub mod text;
mod unambiguous;
mod urlencoded;
mod utf16;
mod xml;

use std::fmt;

use http::HeaderMap;
use http::Method;
use http::request::Parts;

use crate::client::ClientIp;

pub use self::fields::BodyFields;
pub use self::host::CanonicalHost;
pub use self::path::CanonicalPath;

/// The head of a request as rules see it. Borrows from the request it was read from.
pub struct RequestHead<'r> {
    pub method: &'r Method,
    pub host: CanonicalHost<'r>,
    pub path: CanonicalPath<'r>,
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
            path: CanonicalPath::new(parts.uri.path()),
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
