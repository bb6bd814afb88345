//! Where a Local API listens.

use std::fmt;

use http::Uri;
use http::uri::Authority;

/// The URL that the paths of the API are put behind.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LapiUrl(String);

/// Why a text is not the URL of a Local API. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidLapiUrl {
    #[error("a Local API has an http:// or https:// URL")]
    NotHttp,
    #[error("the URL of a Local API has no user name or password")]
    Credentials,
    #[error("the URL of a Local API has no query")]
    Query,
}

impl LapiUrl {
    pub fn parse(text: &str) -> Result<Self, InvalidLapiUrl> {
        let uri = text.trim().parse::<Uri>().map_err(|_| InvalidLapiUrl::NotHttp)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidLapiUrl::Credentials);
        }
        let Some(scheme) = scheme.filter(|_| uri.host().is_some_and(|host| !host.is_empty())) else {
            return Err(InvalidLapiUrl::NotHttp);
        };
        if uri.query().is_some() || text.contains('#') {
            return Err(InvalidLapiUrl::Query);
        }
        if authority.ends_with(':') {
            return Err(InvalidLapiUrl::NotHttp);
        }
        // Every path of the API begins with its version, which a URL may name as well.
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path);
        Ok(Self(format!("{scheme}://{authority}{path}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of a path, which begins with `/v1/`.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl fmt::Display for LapiUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_written_in_several_ways() {
        for (text, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/decisions"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/decisions"),
            ("https://lapi.example.com/v1/", "https://lapi.example.com/v1/decisions"),
            (" http://[::1]:8080/crowdsec ", "http://[::1]:8080/crowdsec/v1/decisions"),
        ] {
            assert_eq!(LapiUrl::parse(text).unwrap().at("/v1/decisions"), expected);
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in ["", "127.0.0.1:8080", "ftp://h/", "unix:/run/crowdsec.sock", "http://", "http://h:/"] {
            assert_eq!(LapiUrl::parse(text), Err(InvalidLapiUrl::NotHttp), "{text}");
        }
        assert_eq!(LapiUrl::parse("http://u:p@h"), Err(InvalidLapiUrl::Credentials));
        assert_eq!(LapiUrl::parse("http://h/?startup=true"), Err(InvalidLapiUrl::Query));
    }
}
