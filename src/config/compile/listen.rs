//! The `listen` section.

use std::collections::HashMap;

use super::compiler::Compiler;
use crate::client::Networks;
use crate::client::TrustedProxies;
use crate::config::raw::Document;
use crate::config::raw::Spanned;
use crate::config::raw::server::Listen;
use crate::config::raw::server::Listener;
use crate::config::source::SourceRange;
use crate::listen::ListenAddress;
use crate::listen::ListenerConfig;
use crate::listen::ListenerSettings;
use crate::listen::tls;

/// An entry of `listen`.
pub(super) struct ListenEntry {
    pub(super) address: Spanned<ListenAddress>,
    mode: Option<u32>,
    /// The place that requires a PROXY header.
    proxy_protocol: Option<SourceRange>,
    /// The proxies that may ask for decisions here; `None`: requests are forwarded.
    askers: Option<Networks>,
    tls: Option<tls::Settings>,
}

impl Compiler {
    /// every listener, each address once.
    pub(super) fn listen(&mut self, document: &Document) -> Vec<ListenEntry> {
        let Some(entries) = document.listen.get() else { return Vec::new() };
        if entries.items.is_empty() && self.mistakes.is_empty() {
            self.mistakes.report(
                entries.at,
                "the list is empty, so the gateway would not listen anywhere",
                "write `listen: 0.0.0.0:8080`",
            );
        }
        let mut described: Vec<ListenEntry> = Vec::new();
        let mut seen: HashMap<ListenAddress, u32> = HashMap::new();
        for entry in &entries.items {
            let (address, mode, proxy_protocol, askers, tls) = match entry {
                Listen::Address(address) => (address, None, None, None, None),
                Listen::Listener(listener) => {
                    let tls = listener.tls.get().and_then(|tls| self.listener_tls(tls));
                    let askers = self.askers(listener);
                    let Some(address) = listener.address.get() else { continue };
                    let mode = self.socket_mode(listener, &address.value);
                    (address, mode, listener.proxy_protocol.get().filter(|required| required.value), askers, tls)
                }
            };
            // Port 0 stands for a different free port each time.
            let is_any_port = address.value.is_any_port();
            let repeated = if is_any_port { None } else { seen.insert(address.value.clone(), address.at.line) };
            if let Some(line) = repeated {
                let message = format!("`{}` is in `listen` twice", address.value);
                self.mistakes.report(
                    address.at,
                    message,
                    format!("the first one is at line {line}: keep one of the two"),
                );
                continue;
            }
            let address = address.clone();
            let proxy_protocol = proxy_protocol.map(|required| required.at);
            described.push(ListenEntry { address, mode, proxy_protocol, askers, tls });
        }
        described
    }

    /// Permissions of the file of a Unix socket.
    fn socket_mode(&mut self, listener: &Listener, address: &ListenAddress) -> Option<u32> {
        let mode = listener.mode.get()?;
        if let ListenAddress::Ip(_) = address {
            self.mistakes.report(
                mode.at,
                "`mode` is of the file of a Unix socket, and this listener has an IP address",
                "remove `mode`, or listen on a Unix socket",
            );
        }
        Some(mode.value.0)
    }

    /// The proxies that may ask for decisions at a listener; `None`: it forwards requests.
    fn askers(&mut self, listener: &Listener) -> Option<Networks> {
        let Listener { serves, from, proxy_protocol, .. } = listener;
        if serves.get().is_none() {
            if let (true, Some(at)) = (serves.is_absent(), from.key()) {
                self.mistakes.report(
                    at,
                    "`from` is never read, because this listener forwards requests",
                    "add `serves: decisions` for proxies that ask, or remove `from`",
                );
            }
            return None;
        }
        if let Some(required) = proxy_protocol.get().filter(|required| required.value) {
            self.mistakes.report(
                required.at,
                "a listener with `serves: decisions` takes no PROXY header: the proxies that ask connect themselves",
                "remove `proxy_protocol`; the proxy that asks names its client in `X-Forwarded-For`",
            );
        }
        let Some(networks) = from.get() else { return Some(Networks::loopback()) };
        self.refuse_everyone(networks, "lets everyone ask: any client could describe any request from any address");
        if networks.items.is_empty() && self.mistakes.is_empty() {
            self.mistakes.report(
                networks.at,
                "`from` is empty, so that no proxy could ask",
                "name the networks of your proxies, such as `10.1.2.0/24`, or remove `from` for those on this machine",
            );
        }
        Some(Networks::new(networks.items.iter().map(|network| network.value)))
    }

    /// The settings of each listener.
    pub(super) fn listeners(
        &mut self,
        document: &Document,
        described: Vec<ListenEntry>,
        proxies: &TrustedProxies,
    ) -> Vec<ListenerConfig> {
        let has_no_trusted_proxies = has_no_trusted_proxies(document);
        let listeners = described.into_iter().map(|ListenEntry { address, mode, proxy_protocol, askers, tls }| {
            if let Some(at) = proxy_protocol.filter(|_| has_no_trusted_proxies) {
                self.mistakes.report(
                    at,
                    "`proxy_protocol: true` lets only trusted proxies connect, and there are none",
                    "add `client_ip:` with `trusted_proxies:`, the networks of your load balancers, or write `false`",
                );
            }
            let settings = ListenerSettings { proxy_protocol: proxy_protocol.map(|_| proxies.clone()), askers, tls };
            ListenerConfig { address: address.value, mode, settings }
        });
        listeners.collect()
    }
}

/// Whether no proxy is trusted. A mistake in the list counts as trusted proxies.
fn has_no_trusted_proxies(document: &Document) -> bool {
    let Some(client) = document.client_ip.get() else { return document.client_ip.is_absent() };
    let proxies = &client.trusted_proxies;
    proxies.is_absent() || proxies.get().is_some_and(|proxies| proxies.items.is_empty())
}
