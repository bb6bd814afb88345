//! The URL of a webhook. Its path is its password, so it is never shown.

use std::fmt;

use http::Uri;
use http::uri::Authority;

/// An http or https URL. Only its scheme and host are shown.
#[derive(Clone, Eq, PartialEq)]
pub struct Webhook(Uri);

/// Why a text is not a webhook URL. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidWebhook {
    #[error("a webhook is an http:// or https:// URL")]
    NotHttp,
    #[error("a webhook's URL has no user name or password: the secret stands in its path")]
    Credentials,
}

impl Webhook {
    pub fn parse(text: &str) -> Result<Self, InvalidWebhook> {
        let uri = text.trim().parse::<Uri>().map_err(|_| InvalidWebhook::NotHttp)?;
        let is_http = uri.scheme_str().is_some_and(|scheme| scheme == "http" || scheme == "https");
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if is_http && authority.contains('@') {
            return Err(InvalidWebhook::Credentials);
        }
        if !is_http || uri.host().is_none_or(str::is_empty) || authority.ends_with(':') {
            return Err(InvalidWebhook::NotHttp);
        }
        Ok(Self(uri))
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// The host name or address, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    pub fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// The value of the Host field.
    pub(super) fn authority(&self) -> &str {
        self.0.authority().map(Authority::as_str).unwrap_or_default()
    }

    /// The whole URL, with the secret in its path.
    pub(super) fn url(&self) -> &Uri {
        &self.0
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/***", self.0.scheme_str().unwrap_or_default(), self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_shows_its_host_and_never_its_path() {
        let webhook = Webhook::parse("https://hooks.example.com/T0/s3cret?token=abc").unwrap();
        assert_eq!(format!("{webhook} {webhook:?}"), "https://hooks.example.com/*** https://hooks.example.com/***");
        assert_eq!((webhook.host(), webhook.port(), webhook.is_https()), ("hooks.example.com", 443, true));
        assert_eq!(webhook.url().path_and_query().unwrap(), "/T0/s3cret?token=abc");
        let local = Webhook::parse("http://[::1]:8065").unwrap();
        assert_eq!((local.host(), local.port(), local.url().path()), ("::1", 8065, "/"));
    }

    #[test]
    fn only_http_urls_are_taken() {
        for text in [
            "",
            "hooks.example.com/T0",
            "ftp://example.com/",
            "https://",
            "/T0",
            "https://example.com:/",
            "ops@example.com",
        ] {
            assert_eq!(Webhook::parse(text), Err(InvalidWebhook::NotHttp), "{text}");
        }
        assert_eq!(Webhook::parse("https://me:secret@example.com/"), Err(InvalidWebhook::Credentials));
    }
}
