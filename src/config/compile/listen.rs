//! The `listen` section.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::config::compile::document::{Compiler, ONE_FILE};
use crate::config::raw::forms::OneOrList;
use crate::config::raw::server::{Listen, Listener};
use crate::config::raw::{Document, Spanned, Text};
use crate::config::source::{SourceRange, UnreadableFile};
use crate::config::{raw, source};
use crate::listen::tls::{Certificate, InvalidCertificate, TlsSettings};
use crate::listen::{ListenAddress, ListenerConfig, ListenerSettings};
use crate::rules::client::{Networks, TrustedProxies};
use crate::wire::tls::{CaCertificates, InvalidCaCertificates};
use crate::words::clock::wall;
use crate::words::files::WatchedFile;

/// An entry of `listen`.
pub(super) struct ListenEntry {
    pub(super) address: Spanned<ListenAddress>,
    mode: Option<u32>,
    /// The place that requires a PROXY header.
    proxy_protocol: Option<SourceRange>,
    /// The proxies that may ask for decisions here; `None`: requests are forwarded.
    askers: Option<Networks>,
    tls: Option<TlsSettings>,
}

impl Compiler {
    /// every listener, each address once.
    pub(super) fn listen(&mut self, document: &Document) -> Vec<ListenEntry> {
        let Some(entries) = document.listen.get() else { return Vec::new() };
        if entries.is_empty() {
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
            self.note_address(address.value.clone(), address.at);
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
        if networks.is_empty() {
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
    proxies.is_absent() || proxies.get().is_some_and(OneOrList::is_empty)
}

impl Compiler {
    pub(super) fn listener_tls(&mut self, tls: &raw::server::ListenerTls) -> Option<TlsSettings> {
        let client_ca = tls.client_ca.get().and_then(|file| self.authorities(file));
        let files = tls.certificates.get()?;
        if files.is_empty() {
            let help = "write `certificates: [{cert: tls/site.pem, key: tls/site.key}]`";
            self.mistakes.report(files.at, "the list of certificates is empty", help);
        }
        let certificates = files.items.iter().filter_map(|files| self.certificate(files)).collect();
        Some(TlsSettings { certificates, client_ca })
    }

    fn certificate(&mut self, files: &raw::server::CertificateFiles) -> Option<Certificate> {
        // Both are read even if one is invalid, so that both are watched and every mistake is reported.
        let chain = files.cert.get().and_then(|file| Some((file, self.pem(file, "certificate")?)));
        let key = files.key.get().and_then(|file| Some((file, self.pem(file, "key")?)));
        let ((cert, chain), (key, secret)) = (chain?, key?);
        match Certificate::from_pem(&chain, &secret) {
            Ok(certificate) => {
                self.check_dates(cert, &certificate);
                Some(certificate)
            }
            Err(error) => {
                self.report_unusable(cert, key, error);
                None
            }
        }
    }

    fn authorities(&mut self, file: &Text) -> Option<CaCertificates> {
        let pem = self.pem(file, "client_ca")?;
        let report_unusable = |error: InvalidCaCertificates| {
            let help = "write a PEM file with `-----BEGIN CERTIFICATE-----`, one for each authority";
            self.mistakes.report(file.at, format!("`{}`: {error}", file.value), help);
        };
        CaCertificates::from_pem(&pem).map_err(report_unusable).ok()
    }

    /// Warns of a certificate that is not valid now. It is served all the same: without it there would be none.
    fn check_dates(&mut self, cert: &Text, certificate: &Certificate) {
        let now = i64::try_from(wall().as_micros()).unwrap_or(i64::MAX);
        let now = Timestamp::from_microsecond(now).unwrap_or(Timestamp::MAX);
        let Certificate { begins, expires, .. } = certificate;
        let name = &cert.value;
        if *expires < now {
            let message = format!("the certificate `{name}` has expired on {expires}, clients will not accept it");
            self.mistakes.warn(cert.at, message, "renew it: the gateway reads it again when the file changes");
        } else if now < *begins {
            let message = format!("the certificate `{name}` is not valid before {begins}, clients will not accept it");
            self.mistakes.warn(
                cert.at,
                message,
                "check the clock of this machine, or use the previous certificate until then",
            );
        }
    }

    fn report_unusable(&mut self, cert: &Text, key: &Text, error: InvalidCertificate) {
        let (file, help) = match error {
            InvalidCertificate::NoCertificate => {
                (cert, "write a PEM file with `-----BEGIN CERTIFICATE-----`, the server's own certificate first")
            }
            InvalidCertificate::Malformed => (cert, "copy the whole file again, or request a new certificate"),
            InvalidCertificate::NoKey => (key, "write a PEM file with `-----BEGIN PRIVATE KEY-----`"),
            InvalidCertificate::EncryptedKey => {
                (key, "the gateway cannot enter a password: remove it with `openssl pkey -in OLD -out NEW`")
            }
            InvalidCertificate::UnsupportedKey => {
                (key, "use ECDSA (P-256, P-384, P-521), Ed25519, or RSA of 2048 to 8192 bits")
            }
            InvalidCertificate::Mismatch => {
                let message = format!("the key `{}` does not belong to the certificate `{}`", key.value, cert.value);
                let help =
                    "name the key of this certificate; the server's own certificate must be the first in its file";
                self.mistakes.report_certificate_mismatch(key.at, message, help);
                return;
            }
        };
        self.mistakes.report(file.at, format!("`{}`: {error}", file.value), help);
    }

    /// Reads a PEM file. No message shows its content.
    fn pem(&mut self, name: &Text, kind: &str) -> Option<String> {
        let path = self.base.join(&name.value);
        self.files.push(WatchedFile::as_it_is(&path));
        let error = match source::read_text(&path) {
            Ok(content) if kind == "key" => {
                self.warn_of_readers(name, &path, kind);
                return Some(content);
            }
            Ok(content) => return Some(content),
            Err(error) => error,
        };
        if self.refuse_glob(name, "the path of a file", ONE_FILE) {
            return None;
        }
        let (message, help) = match error {
            UnreadableFile::NotUtf8 { .. } => (
                format!("the {kind} file `{}` is not PEM", path.display()),
                "convert it: `openssl x509 -inform der` for a certificate, `openssl pkey -inform der` for a key",
            ),
            error => (
                format!("cannot read the {kind} file `{}`: {error}", path.display()),
                "check the path, which is relative to the configuration file, and its permissions",
            ),
        };
        self.mistakes.report(name.at, message, help);
        None
    }
}
