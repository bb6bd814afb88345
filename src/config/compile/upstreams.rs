//! The `upstream` and `upstreams` sections, and references to upstreams.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use http::uri::Authority;
use http::uri::PathAndQuery;
use rustls::pki_types::ServerName;

use super::compiler::Compiler;
use super::server_url::server_url;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Text;
use crate::listen::ListenerConfig;
use crate::route::UpstreamId;
use crate::spelling::nearest;
use crate::tls::CaCertificates;
use crate::tls::InvalidCaCertificates;
use crate::upstream::Balance;
use crate::upstream::HeadBounds;
use crate::upstream::HealthCheck;
use crate::upstream::HostHeader;
use crate::upstream::ServerUrl;
use crate::upstream::ServerVerification;
use crate::upstream::Settings;
use crate::upstream::Timeouts;

/// The upstreams of a configuration: those under `upstreams`, and those that are written as a URL.
#[derive(Debug, Default)]
pub(super) struct Upstreams {
    by_name: BTreeMap<String, UpstreamId>,
    settings: Vec<Settings>,
}

impl Upstreams {
    pub(super) fn compiled(mut self, heads: HeadBounds) -> Vec<Settings> {
        self.settings.iter_mut().for_each(|settings| settings.heads = heads);
        self.settings
    }

    fn add(&mut self, name: &str, settings: Settings) -> Option<UpstreamId> {
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
        let settings = Settings {
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
        if known.is_empty() {
            let message = format!("there is no upstream `{}`", text.value);
            let help = "write a URL such as `http://127.0.0.1:8000`, or define it under `upstreams`";
            self.mistakes.report(text.at, message, help);
        } else {
            self.unknown_name(text, "upstream", "upstreams", known);
        }
    }

    fn upstream_settings(&mut self, name: Arc<str>, raw: &raw::upstream::Upstream) -> Settings {
        let balance = match raw.balance.get().map(|balance| balance.value) {
            Some(raw::upstream::Balance::RoundRobin) => Balance::RoundRobin,
            Some(raw::upstream::Balance::ClientIp) => Balance::ClientIp,
            Some(raw::upstream::Balance::LeastRequests) | None => Balance::LeastRequests,
        };
        let default = Timeouts::default();
        let timeouts = match raw.timeouts.get() {
            None => default,
            Some(timeouts) => Timeouts {
                connect: self.span(&timeouts.connect, default.connect),
                response: self.span(&timeouts.response, default.response),
                idle: self.span(&timeouts.idle, default.idle),
            },
        };
        Settings {
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

    fn servers(&mut self, raw: &raw::upstream::Upstream) -> Vec<ServerUrl> {
        let Some(texts) = raw.servers.get() else { return Vec::new() };
        if texts.items.is_empty() {
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

    fn upstream_tls(&mut self, raw: &raw::upstream::UpstreamTls) -> ServerVerification {
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

    fn health(&mut self, raw: &raw::upstream::Health) -> HealthCheck {
        let path = raw.path.get();
        if let Some(path) = path
            && (!path.value.starts_with('/') || path.value.parse::<PathAndQuery>().is_err())
        {
            self.mistakes.report(path.at, format!("`{}` is not a path", path.value), "write one such as `/healthz`");
        }
        HealthCheck {
            path: path.map(|path| path.value.clone()).unwrap_or_default(),
            host: raw.host.get().and_then(|host| self.fixed_host(host, "write a name such as `app.internal`")),
            every: self.span(&raw.every, std::time::Duration::from_secs(5)),
            timeout: self.span(&raw.timeout, std::time::Duration::from_secs(2)),
            healthy: self.positive(&raw.healthy, 2),
            unhealthy: self.positive(&raw.unhealthy, 3),
        }
    }
}

/// `upstream: api` or `upstream: app`
fn choices(names: &[&str]) -> String {
    names.iter().map(|name| format!("`upstream: {name}`")).collect::<Vec<_>>().join(" or ")
}
