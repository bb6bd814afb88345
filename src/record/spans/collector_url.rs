//! Where spans are sent.

use std::fmt;

use http::Uri;
use http::uri::Authority;

/// The URL of a collector's path for traces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CollectorUrl(String);

/// Why a text is not the URL of a collector. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidCollectorUrl {
    #[error("`otlp` is an http:// or https:// URL")]
    NotHttp,
    #[error("`otlp` has no user name or password")]
    Credentials,
    #[error("`otlp` has no query")]
    Query,
}

/// What OTLP/HTTP puts behind the URL of a collector.
const TRACES: &str = "/v1/traces";

impl CollectorUrl {
    /// `/v1/traces` is added where it is missing.
    pub fn parse(text: &str) -> Result<Self, InvalidCollectorUrl> {
        let uri = text.trim().parse::<Uri>().map_err(|_| InvalidCollectorUrl::NotHttp)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidCollectorUrl::Credentials);
        }
        let Some(scheme) = scheme.filter(|_| uri.host().is_some_and(|host| !host.is_empty())) else {
            return Err(InvalidCollectorUrl::NotHttp);
        };
        if uri.query().is_some() || text.contains('#') {
            return Err(InvalidCollectorUrl::Query);
        }
        if authority.ends_with(':') {
            return Err(InvalidCollectorUrl::NotHttp);
        }
        let path = uri.path().trim_end_matches('/');
        let end = if path.ends_with(TRACES) { "" } else { TRACES };
        Ok(Self(format!("{scheme}://{authority}{path}{end}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_for_traces_is_added_once() {
        for (text, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example.com/v1/traces", "https://otel.example.com/v1/traces"),
            ("https://otel.example.com/otlp/", "https://otel.example.com/otlp/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(CollectorUrl::parse(text).map(|url| url.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_collector_is_refused() {
        for (text, expected) in [
            ("", InvalidCollectorUrl::NotHttp),
            ("127.0.0.1:4318", InvalidCollectorUrl::NotHttp),
            ("grpc://127.0.0.1:4317", InvalidCollectorUrl::NotHttp),
            ("http://a:", InvalidCollectorUrl::NotHttp),
            ("http://me:hunter2@a", InvalidCollectorUrl::Credentials),
            ("http://a/?token=hunter2", InvalidCollectorUrl::Query),
        ] {
            assert_eq!(CollectorUrl::parse(text), Err(expected), "{text}");
        }
    }
}
