//! The `upstream` and `upstreams` sections, and references to upstreams.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Uri};
use rustls::pki_types::ServerName;

use crate::config::compile::document::Compiler;
use crate::config::raw;
use crate::config::raw::server::unix_socket_path;
use crate::config::raw::{Document, Field, InvalidValue, Text};
use crate::listen::ListenerConfig;
use crate::rules::route::UpstreamId;
use crate::upstream::server::bare_host;
use crate::upstream::{
    Balance, HeadBounds, HealthCheck, HostHeader, Location, ServerUrl, ServerVerification, Timeouts, UNIX_SOCKET,
    UpstreamSettings,
};
use crate::wire::tls::{CaCertificates, InvalidCaCertificates};
use crate::words::glob::Glob;
use crate::words::units::nearest;

/// The upstreams of a configuration: named ones under `upstreams`, and ones that are written as a URL.
#[derive(Debug, Default)]
pub(super) struct Upstreams {
    by_name: BTreeMap<String, UpstreamId>,
    settings: Vec<UpstreamSettings>,
}

impl Upstreams {
    pub(super) fn compiled(mut self, heads: HeadBounds) -> Vec<UpstreamSettings> {
        self.settings.iter_mut().for_each(|settings| settings.heads = heads);
        self.settings
    }

    fn add(&mut self, name: &str, settings: UpstreamSettings) -> Option<UpstreamId> {
        let id = u16::try_from(self.settings.len()).ok().map(UpstreamId)?;
        self.settings.push(settings);
        self.by_name.insert(name.to_owned(), id);
        Some(id)
    }
}

impl Compiler {
    /// Every entry of `upstreams`.
    pub(super) fn declare_upstreams(&mut self, document: &Document, upstreams: &mut Upstreams) {
        let Some(named) = document.upstreams.get() else { return };
        for (name, raw) in &named.entries {
            let checked = self.name(name);
            if name.value.contains([':', '/']) {
                let message = format!("the name `{}` looks like an address", name.value);
                self.mistakes.report(name.at, message, "write a word as the name, and the address under `servers`");
            }
            let settings = self.upstream_settings(checked.unwrap_or_else(|| Arc::from("")), raw);
            if upstreams.add(&name.value, settings).is_none() {
                self.mistakes.report(
                    name.at,
                    format!("there are more than {} upstreams", u16::MAX),
                    "a configuration holds no more",
                );
                return;
            }
        }
    }

    /// The upstream of requests that match no route. None is needed where no listener forwards requests.
    pub(super) fn default_upstream(
        &mut self,
        document: &Document,
        listeners: &[ListenerConfig],
        upstreams: &mut Upstreams,
    ) -> Option<UpstreamId> {
        if let Some(text) = document.upstream.get() {
            return self.upstream(text, upstreams);
        }
        if !document.upstream.is_absent() || matches!(document.upstreams, Field::Invalid) {
            return None;
        }
        let names: Vec<&str> = upstreams.by_name.keys().map(String::as_str).collect();
        let forwards = listeners.is_empty() || listeners.iter().any(|listener| listener.settings.askers.is_none());
        let (message, help) = match names[..] {
            [_] => return Some(UpstreamId(0)),
            _ if !forwards => return None,
            [] if document.upstreams.get().is_some_and(|named| !named.is_whole) => return None,
            [] => ("`upstream` is missing", "write where requests go: `upstream: http://127.0.0.1:8000`".to_owned()),
            _ => (
                "`upstream` is missing, and there are several `upstreams`",
                format!("write which one is for requests that match no route: {}", choices(&names)),
            ),
        };
        self.mistakes.report(document.at, message, help);
        None
    }

    /// The upstream that a name or a URL stands for.
    pub(super) fn upstream(&mut self, text: &Text, upstreams: &mut Upstreams) -> Option<UpstreamId> {
        if let Some(id) = upstreams.by_name.get(&text.value) {
            return Some(*id);
        }
        // Upstreams written as a URL have no name to refer to.
        let known: Vec<&str> =
            upstreams.by_name.keys().map(String::as_str).filter(|name| !name.contains(':')).collect();
        if !text.value.contains([':', '/', '.']) || nearest(&text.value, &known).is_some() {
            self.unknown_upstream(text, &known);
            return None;
        }
        let server = match server_url(&text.value) {
            Ok(server) => server,
            Err(problem) => {
                problem.report(text.at, &mut self.mistakes);
                return None;
            }
        };
        // Two spellings of one URL are one upstream.
        let scheme = if server.verified_as.is_some() { "https://" } else { "" };
        let name = format!("{scheme}{}", server.name());
        if let Some(id) = upstreams.by_name.get(&name) {
            return Some(*id);
        }
        let settings = UpstreamSettings {
            name: Arc::from(name.as_str()),
            servers: vec![server],
            balance: Balance::default(),
            host: HostHeader::default(),
            timeouts: Timeouts::default(),
            heads: HeadBounds::default(),
            health: None,
            tls: ServerVerification::default(),
            http2: false,
            max_idle: None,
        };
        let id = upstreams.add(&name, settings);
        if id.is_none() {
            self.mistakes.report(
                text.at,
                format!("there are more than {} upstreams", u16::MAX),
                "a configuration holds no more",
            );
        }
        id
    }

    fn unknown_upstream(&mut self, text: &Text, known: &[&str]) {
        if known.is_empty() && !self.unread.contains(&"upstreams") {
            let message = format!("there is no upstream `{}`", text.value);
            let help = "write a URL such as `http://127.0.0.1:8000`, or define it under `upstreams`";
            self.mistakes.report(text.at, message, help);
        } else {
            self.unknown_name(text, "upstream", "upstreams", known);
        }
    }

    fn upstream_settings(&mut self, name: Arc<str>, raw: &raw::store::Upstream) -> UpstreamSettings {
        let balance = raw.balance.get().map(|balance| balance.value).unwrap_or_default();
        let default = Timeouts::default();
        let timeouts = match raw.timeouts.get() {
            None => default,
            Some(timeouts) => Timeouts {
                connect: self.span(&timeouts.connect, default.connect),
                response: self.span(&timeouts.response, default.response),
                idle: self.span(&timeouts.idle, default.idle),
            },
        };
        UpstreamSettings {
            name,
            servers: self.servers(raw),
            balance,
            host: raw.host.get().and_then(|host| self.host_header(host)).unwrap_or_default(),
            timeouts,
            heads: HeadBounds::default(),
            health: raw.health.get().map(|health| self.health(health)),
            tls: raw.tls.get().map(|tls| self.upstream_tls(tls)).unwrap_or_default(),
            http2: raw.http2.get().is_some_and(|http2| http2.value),
            max_idle: raw.max_idle.get().map(|most| usize::try_from(most.value).unwrap_or(usize::MAX)),
        }
    }

    fn servers(&mut self, raw: &raw::store::Upstream) -> Vec<ServerUrl> {
        let Some(texts) = raw.servers.get() else { return Vec::new() };
        if texts.is_empty() {
            self.mistakes.report(texts.at, "the upstream has no servers", "write `servers: [http://127.0.0.1:8000]`");
        }
        let mut servers: Vec<ServerUrl> = Vec::new();
        for text in &texts.items {
            match server_url(&text.value) {
                Err(problem) => problem.report(text.at, &mut self.mistakes),
                Ok(server) if servers.iter().any(|known| known.location == server.location) => {
                    let message = format!("the server `{}` is named twice", text.value);
                    self.mistakes.report(text.at, message, "keep one of the two");
                }
                Ok(server) => servers.push(server),
            }
        }
        servers
    }

    fn upstream_tls(&mut self, raw: &raw::store::UpstreamTls) -> ServerVerification {
        let ca = raw.ca.get().and_then(|file| {
            let found = self.file(file, "certificate")?;
            let read = CaCertificates::from_pem(&found.content);
            let report = |error: InvalidCaCertificates| {
                let message = format!("cannot use the certificate file `{}`: {error}", found.path.display());
                self.mistakes.report(file.at, message, "name a PEM file with the certificates of authorities");
            };
            read.map_err(report).ok()
        });
        let server_name = raw.server_name.get().and_then(|name| {
            if self.refuse_glob(
                name,
                "a server's name",
                "write the name in the servers' certificates, such as `app.internal`",
            ) {
                return None;
            }
            let parsed = ServerName::try_from(name.value.clone()).ok();
            if parsed.is_none() {
                let help = "write the name in the servers' certificates, such as `app.internal`";
                self.mistakes.report(name.at, format!("`{}` is not a server's name", name.value), help);
            }
            parsed
        });
        ServerVerification { ca, server_name }
    }

    fn host_header(&mut self, host: &Text) -> Option<HostHeader> {
        if host.value == "preserve" {
            return Some(HostHeader::Preserve);
        }
        let help = "write `preserve` for the client's, or a name such as `app.internal`";
        self.fixed_host(host, help).map(HostHeader::Fixed)
    }

    fn fixed_host(&mut self, host: &Text, help: &str) -> Option<HeaderValue> {
        if self.refuse_glob(host, "a host", help) {
            return None;
        }
        let is_host = host.value.parse::<Authority>().is_ok() && !host.value.contains('@');
        let value = HeaderValue::from_str(&host.value).ok().filter(|_| is_host);
        if value.is_none() {
            self.mistakes.report(host.at, format!("`{}` is not a host", host.value), help);
        }
        value
    }

    fn health(&mut self, raw: &raw::store::Health) -> HealthCheck {
        let path = raw.path.get();
        if let Some(path) = path
            && (!path.value.starts_with('/') || path.value.parse::<PathAndQuery>().is_err())
        {
            self.mistakes.report(path.at, format!("`{}` is not a path", path.value), "write one such as `/healthz`");
        }
        HealthCheck {
            path: path.map(|path| path.value.clone()).unwrap_or_default(),
            host: raw.host.get().and_then(|host| self.fixed_host(host, "write a name such as `app.internal`")),
            every: self.span(&raw.every, HealthCheck::EVERY),
            timeout: self.span(&raw.timeout, HealthCheck::TIMEOUT),
            healthy: self.positive(&raw.healthy, HealthCheck::HEALTHY),
            unhealthy: self.positive(&raw.unhealthy, HealthCheck::UNHEALTHY),
        }
    }
}

/// `upstream: api` or `upstream: app`
fn choices(names: &[&str]) -> String {
    names.iter().map(|name| format!("`upstream: {name}`")).collect::<Vec<_>>().join(" or ")
}

// The URL of an upstream's server.

/// Parses the URL of a server.
pub(super) fn server_url(url: &str) -> Result<ServerUrl, InvalidValue> {
    if url.contains('@') {
        // The message does not show the URL: it may hold a password.
        return Err(InvalidValue::with(
            "a server's URL must not contain a user name or password",
            "remove the part before the `@`",
        ));
    }
    if let Some(server) = on_unix_socket(url) {
        return server;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        let suggestion = with_scheme(url).map(|url| format!(": `{url}`")).unwrap_or_default();
        return Err(InvalidValue::with(
            format!("`{url}` is not a URL"),
            format!("a server's URL begins with `http://`{suggestion}"),
        ));
    };
    let scheme = scheme.to_ascii_lowercase();
    let is_https = match scheme.as_str() {
        "http" => false,
        "https" => true,
        "fastcgi" | "fcgi" | "scgi" | "uwsgi" | "ajp" => {
            return Err(InvalidValue::with(
                format!("`{scheme}://` is not supported: the gateway speaks HTTP to applications"),
                "write the address of the web server in front of it: `http://127.0.0.1:8000`",
            ));
        }
        "ws" => {
            return Err(InvalidValue::with("`ws://` is not supported for servers", format!("write `http://{rest}`")));
        }
        "wss" => {
            return Err(InvalidValue::with("`wss://` is not supported for servers", format!("write `https://{rest}`")));
        }
        _ => {
            return Err(InvalidValue::with(
                format!("`{scheme}://` is not supported for servers"),
                format!("write `http://{rest}` or `https://{rest}`"),
            ));
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if rest.len() > authority.len() && &rest[authority.len()..] != "/" {
        return Err(InvalidValue::with(
            format!("a server's URL ends after the port, but here `{}` follows", &rest[authority.len()..]),
            format!("write `{scheme}://{authority}`: requests keep their own path"),
        ));
    }
    if Glob::looks_like_glob(authority) {
        return Err(InvalidValue::of_glob(url, "a server's URL", "write each server, in a list under `servers`"));
    }
    let malformed = || {
        // What nginx has behind a server.
        let first = url.split_whitespace().next().unwrap_or_default().trim_end_matches(';');
        let help = if first != url && server_url(first).is_ok() {
            format!("write `{first}`: requests go to the server with the fewest")
        } else {
            "write one such as `http://127.0.0.1:8000` or `http://app.internal`".to_owned()
        };
        InvalidValue::with(format!("`{url}` is not a server's URL"), help)
    };
    let parsed: Authority = authority.to_ascii_lowercase().parse().map_err(|_| malformed())?;
    // After a colon there must be a port.
    let port = authority.rsplit_once(']').map_or(authority, |(_, after)| after).rsplit_once(':').map(|(_, port)| port);
    let port_is_number = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if parsed.host().is_empty() || !port_is_number || Uri::try_from(format!("http://{parsed}/")).is_err() {
        return Err(malformed());
    }
    if !is_https {
        return Ok(parsed.into());
    }
    let name = ServerName::try_from(bare_host(&parsed).to_owned());
    let name = name.map_err(|_| {
        InvalidValue::with(
            format!("no certificate can be for `{}`", parsed.host()),
            "write one with a DNS name or an IP address, such as `https://app.internal`",
        )
    })?;
    Ok(ServerUrl { location: Location::Authority(parsed), verified_as: Some(name) })
}

/// The URL that was probably meant by a text without `://`. `None`: nothing is left of it.
fn with_scheme(text: &str) -> Option<String> {
    let word = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let scheme = text[..word].to_ascii_lowercase();
    let is_scheme = ["http", "https"].contains(&&*scheme) && text[word..].starts_with([':', '/', ';']);
    let rest = if is_scheme { text[word..].trim_start_matches([':', '/', ';']) } else { text.trim_start_matches('/') };
    let authority = rest.split(|end: char| end == '/' || end.is_whitespace()).next()?.trim_end_matches(';');
    if authority.is_empty() {
        return None;
    }
    Some(format!("{}://{authority}", if is_scheme { &scheme } else { "http" }))
}

/// The server of a URL that names a Unix socket; `None`: it names none.
fn on_unix_socket(url: &str) -> Option<Result<ServerUrl, InvalidValue>> {
    let lower = url.to_ascii_lowercase();
    let spelling = ["http://unix:", "https://unix:", "unix://", "unix:", "http+unix://"]
        .into_iter()
        .find(|spelling| lower.starts_with(spelling))?;
    let written = &url[spelling.len()..];
    if spelling.ends_with("://unix:") && written.starts_with(|first: char| first.is_ascii_digit()) {
        // A port: the host is called so.
        return None;
    }
    // Some clients write the path's slashes encoded, and nginx a colon behind it.
    let path = written.replace("%2F", "/").replace("%2f", "/");
    let path = path.trim_end_matches('/').trim_end_matches(':');
    Some(match unix_socket_path(path, "http://unix:/run/app.sock") {
        Err(problem) => Err(problem),
        Ok(path) if spelling == "http://unix:" && path == written => {
            Ok(ServerUrl { location: Location::UnixSocket(format!("{UNIX_SOCKET}{path}").into()), verified_as: None })
        }
        Ok(path) if spelling == "https://unix:" => Err(InvalidValue::with(
            "TLS over a Unix socket is not supported",
            format!("write `http://unix:{path}`: what passes there stays on this machine"),
        )),
        Ok(path) => Err(InvalidValue::with(
            format!("`{url}` is not a server's URL"),
            format!("a server on a Unix socket is written `http://unix:{path}`"),
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<&str, &str>) {
        let found = server_url(url).map(|server| server.name().to_owned()).map_err(|problem| problem.help);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{url}");
    }

    #[test]
    fn a_server_is_a_url_without_a_path() {
        check("http://127.0.0.1:8000", Ok("127.0.0.1:8000"));
        check("http://127.0.0.1:8000/", Ok("127.0.0.1:8000"));
        check("HTTP://App.internal", Ok("app.internal"));
        check("http://[::1]:8000", Ok("[::1]:8000"));
        check("http://[::1]", Ok("[::1]"));
        check("HTTPS://App.internal:8443/", Ok("app.internal:8443"));
        check("http://unix:/run/App.sock", Ok("unix:/run/App.sock"));
        check("HTTP://Unix:/run/App.sock", Ok("unix:/run/App.sock"));
        check("http://unix:8080", Ok("unix:8080"));
    }

    #[test]
    fn the_help_for_an_invalid_server_says_what_to_write() {
        const ON_SOCKET: &str = "a server on a Unix socket is written `http://unix:/run/App.sock`";
        const IN_FRONT: &str = "write the address of the web server in front of it: `http://127.0.0.1:8000`";
        const EXAMPLE: &str = "write one such as `http://127.0.0.1:8000` or `http://app.internal`";
        check("127.0.0.1:8000", Err("a server's URL begins with `http://`: `http://127.0.0.1:8000`"));
        check("//app", Err("a server's URL begins with `http://`: `http://app`"));
        check("http//app:80", Err("a server's URL begins with `http://`: `http://app:80`"));
        check("https:/app/x", Err("a server's URL begins with `http://`: `https://app`"));
        for url in [
            "unix:/run/App.sock",
            "unix:///run/App.sock",
            "http+unix://%2Frun%2FApp.sock",
            "http://unix:/run/App.sock:",
            "http://unix:/run/App.sock:/",
            "UNIX:/run/App.sock",
        ] {
            check(url, Err(ON_SOCKET));
        }
        check(
            "https://unix:/run/App.sock",
            Err("write `http://unix:/run/App.sock`: what passes there stays on this machine"),
        );
        let long = format!("http://unix:/{}", "a".repeat(107));
        for url in ["http://unix:run/app.sock", "http://unix:./app.sock", "unix:app.sock", "http://unix:", &long] {
            check(url, Err("write where the socket is: `http://unix:/run/app.sock`"));
        }
        check("fastcgi://127.0.0.1:9000", Err(IN_FRONT));
        check("wss://app", Err("write `https://app`"));
        check("ftp://app", Err("write `http://app` or `https://app`"));
        check("http://app/api", Err("write `http://app`: requests keep their own path"));
        check("http://app?x=1", Err("write `http://app`: requests keep their own path"));
        check("http://u:p@app", Err("remove the part before the `@`"));
        check("https://a_b.-", Err("write one with a DNS name or an IP address, such as `https://app.internal`"));
        check("http://a b", Err("write `http://a`: requests go to the server with the fewest"));
        for url in ["http://", "http://:80", "http://app:", "http://app:0", "http://app:99999", "http://[::1"] {
            check(url, Err(EXAMPLE));
        }
    }
}
