//! The `listen` section.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::compiler::Compiler;
use crate::client::TrustedProxies;
use crate::config::raw::Document;
use crate::config::raw::Spanned;
use crate::config::raw::server::Listen;
use crate::config::source::SourceRange;
use crate::listen::ListenerConfig;
use crate::listen::ListenerSettings;
use crate::listen::tls;

/// An entry of `listen`.
pub(super) struct ListenEntry {
    pub(super) address: Spanned<SocketAddr>,
    /// The place that requires a PROXY header.
    proxy_protocol: Option<SourceRange>,
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
        let mut seen: HashMap<SocketAddr, u32> = HashMap::new();
        for entry in &entries.items {
            let (address, proxy_protocol, tls) = match entry {
                Listen::Address(address) => (address, None, None),
                Listen::Listener(listener) => {
                    let tls = listener.tls.get().and_then(|tls| self.listener_tls(tls));
                    let Some(address) = listener.address.get() else { continue };
                    (address, listener.proxy_protocol.get().filter(|required| required.value), tls)
                }
            };
            // Port 0 stands for a different free port each time.
            let repeated = if address.value.port() == 0 { None } else { seen.insert(address.value, address.at.line) };
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
            described.push(ListenEntry { address, proxy_protocol: proxy_protocol.map(|required| required.at), tls });
        }
        described
    }

    /// The settings of each listener.
    pub(super) fn listeners(
        &mut self,
        document: &Document,
        described: Vec<ListenEntry>,
        proxies: &TrustedProxies,
    ) -> Vec<ListenerConfig> {
        let has_no_trusted_proxies = has_no_trusted_proxies(document);
        let listeners = described.into_iter().map(|ListenEntry { address, proxy_protocol, tls }| {
            if let Some(at) = proxy_protocol.filter(|_| has_no_trusted_proxies) {
                self.mistakes.report(
                    at,
                    "`proxy_protocol: true` lets only trusted proxies connect, and there are none",
                    "add `client_ip:` with `trusted_proxies:`, the networks of your load balancers, or write `false`",
                );
            }
            let settings = ListenerSettings { proxy_protocol: proxy_protocol.map(|_| proxies.clone()), tls };
            ListenerConfig { address: address.value, settings }
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
