//! The `listen` and `admin` sections.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Compiler;
use super::response::Found;
use crate::admin::AdminSettings;
use crate::admin::Token;
use crate::client::TrustedProxies;
use crate::config::raw::Document;
use crate::config::raw::Spanned;
use crate::config::raw::server::Listen;
use crate::config::source::Place;
use crate::listen::ListenerConfig;
use crate::listen::ListenerSettings;
use crate::listen::tls;

/// An entry of `listen`.
pub(super) struct Described {
    address: Spanned<SocketAddr>,
    /// Where it says that a PROXY header is required.
    proxy_protocol: Option<Place>,
    tls: Option<tls::Settings>,
}

impl Compiler {
    /// Every listener, each address once.
    pub(super) fn listen(&mut self, document: &Document) -> Vec<Described> {
        let Some(entries) = document.listen.get() else { return Vec::new() };
        if entries.items.is_empty() && self.mistakes.is_empty() {
            self.mistakes.report(entries.at, "an empty list: nothing would listen", "write `listen: 0.0.0.0:8080`");
        }
        let mut described: Vec<Described> = Vec::new();
        let mut seen: HashMap<SocketAddr, u32> = HashMap::new();
        for entry in &entries.items {
            let (address, proxy_protocol, tls) = match entry {
                Listen::Address(address) => (address, None, None),
                Listen::Described(listener) => {
                    let tls = listener.tls.get().and_then(|tls| self.listener_tls(tls));
                    let Some(address) = listener.address.get() else { continue };
                    (address, listener.proxy_protocol.get().filter(|required| required.value), tls)
                }
            };
            // Port 0 is another free port each time.
            let repeated = if address.value.port() == 0 { None } else { seen.insert(address.value, address.at.line) };
            if let Some(line) = repeated {
                let message = format!("`{}` is listened on twice", address.value);
                self.mistakes.report(address.at, message, format!("line {line} has it too: keep one of the two"));
                continue;
            }
            let address = address.clone();
            described.push(Described { address, proxy_protocol: proxy_protocol.map(|required| required.at), tls });
        }
        described
    }

    /// What is asked of connections at each address.
    pub(super) fn listeners(
        &mut self,
        document: &Document,
        described: Vec<Described>,
        proxies: &TrustedProxies,
    ) -> Vec<ListenerConfig> {
        let trusts_nobody = trusts_nobody(document);
        let listeners = described.into_iter().map(|Described { address, proxy_protocol, tls }| {
            if let Some(at) = proxy_protocol.filter(|_| trusts_nobody) {
                self.mistakes.report(
                    at,
                    "`proxy_protocol: true` lets trusted proxies alone connect, and there is none",
                    "add `client_ip:` with `trusted_proxies:`, the networks of the proxies in front, or write `false`",
                );
            }
            let settings = ListenerSettings { proxy_protocol: proxy_protocol.map(|_| proxies.clone()), tls };
            ListenerConfig { address: address.value, settings }
        });
        listeners.collect()
    }

    pub(super) fn admin(&mut self, document: &Document, listen: &[Described]) -> Option<AdminSettings> {
        let admin = document.admin.get()?;
        let token = admin.token_file.get().and_then(|file| self.token(file));
        let Spanned { value: address, at } = *admin.address.get()?;
        if !address.ip().to_canonical().is_loopback() && admin.token_file.is_absent() {
            self.mistakes.report(
                at,
                format!("`{address}` can be reached from other machines, and there is no `token_file`"),
                "write `127.0.0.1`, or add `token_file:` with a file that holds a secret token",
            );
        }
        if address.port() != 0 && listen.iter().any(|other| other.address.value == address) {
            self.mistakes.report(
                at,
                format!("`{address}` is in `listen` too"),
                "the admin listener needs a port of its own, such as `127.0.0.1:9090`",
            );
        }
        Some(AdminSettings { address, token })
    }

    /// Reads the file with the admin token. What it holds is for the admin API, and for no message.
    fn token(&mut self, file: &crate::config::raw::Text) -> Option<Token> {
        let Found { path, content } = self.file(file, "token")?;
        let lines = content.lines().filter(|line| !line.trim().is_empty()).count();
        let message = match lines {
            0 => format!("the token file `{}` is empty", file.value),
            1 => {
                self.warn_of_readers(file, &path, "token");
                self.warn_of_token(file, &path, &content);
                return Token::new(&content);
            }
            _ => format!("the token file `{}` has several lines", file.value),
        };
        self.mistakes.report(file.at, message, "write one line into it, for instance from `openssl rand -hex 32`");
        None
    }
}

/// Whether no proxy is trusted, and not because one is misspelt.
fn trusts_nobody(document: &Document) -> bool {
    let Some(client) = document.client_ip.get() else { return document.client_ip.is_absent() };
    let proxies = &client.trusted_proxies;
    proxies.is_absent() || proxies.get().is_some_and(|proxies| proxies.items.is_empty())
}
