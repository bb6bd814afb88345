//! The URL of a document that the gateway fetches.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

/// An https URL, or an http URL of this machine: whoever can change a document on its way could change decisions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DocumentUrl(Uri);

/// Why a text is not such a URL. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidDocumentUrl {
    #[error("this is no https:// URL")]
    NotHttps,
    #[error("what comes over http from another machine can be changed on its way")]
    PlainHttp,
    #[error("a URL here has no user name or password")]
    Credentials,
    #[error("a URL here has no fragment")]
    Fragment,
}

impl DocumentUrl {
    pub fn parse(text: &str) -> Result<Self, InvalidDocumentUrl> {
        let text = text.trim();
        if text.contains('#') {
            return Err(InvalidDocumentUrl::Fragment);
        }
        let uri = text.parse::<Uri>().map_err(|_| InvalidDocumentUrl::NotHttps)?;
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidDocumentUrl::Credentials);
        }
        let host = uri.host().filter(|host| !host.is_empty() && !authority.ends_with(':'));
        match (uri.scheme_str(), host) {
            (Some("https"), Some(_)) => Ok(Self(uri)),
            (Some("http"), Some(host)) if is_this_machine(host) => Ok(Self(uri)),
            (Some("http"), Some(_)) => Err(InvalidDocumentUrl::PlainHttp),
            _ => Err(InvalidDocumentUrl::NotHttps),
        }
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_comes_over_https_or_from_this_machine() {
        for text in [
            "https://id.example.com/.well-known/jwks.json",
            " https://id.example.com:8443/keys?p=policy ",
            "https://192.0.2.1/",
            "http://localhost:8080/keys",
            "http://127.8.8.8/keys",
            "http://[::1]:80/keys",
        ] {
            assert_eq!(DocumentUrl::parse(text).unwrap().to_string(), text.trim());
        }
        for text in
            ["http://192.0.2.1/", "http://id.example.com/", "http://localhost.example.com/", "http://[2001:db8::1]/"]
        {
            assert_eq!(DocumentUrl::parse(text), Err(InvalidDocumentUrl::PlainHttp), "{text}");
        }
        for text in ["", "keys.json", "/keys", "ftp://h/", "file:///keys", "https://", "https://h:/", "https:keys"] {
            assert_eq!(DocumentUrl::parse(text), Err(InvalidDocumentUrl::NotHttps), "{text}");
        }
        assert_eq!(DocumentUrl::parse("https://u:p@h/"), Err(InvalidDocumentUrl::Credentials));
        assert_eq!(DocumentUrl::parse("http://127.0.0.1@h/"), Err(InvalidDocumentUrl::Credentials));
        assert_eq!(DocumentUrl::parse("https://h/#keys"), Err(InvalidDocumentUrl::Fragment));
    }
}
