//! The paths that proxies ask under.

/// How a proxy describes requests, and which answers it takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Endpoint {
    /// `/auth`: `X-Forwarded-*` or `X-Original-*`, and the answer that the client gets.
    Auth,
    /// `/auth/nginx`: `X-Original-*` alone, because nginx passes every other header of its client along. It takes no status
    /// for a denial but 401 and 403.
    Nginx,
}

impl Endpoint {
    /// `None`: nothing is answered under this path. The query of a question is that of the client, or nothing.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/auth" => Some(Self::Auth),
            "/auth/nginx" => Some(Self::Nginx),
            _ => None,
        }
    }
}
