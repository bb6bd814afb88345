//! The `client_ip` section.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use crate::config::compile::document::{Compiler, NamedFile};
use crate::config::diagnostic::Diagnostic;
use crate::config::raw;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::{Bounds, Document, Field, InvalidValue, Spanned, Text, grammar};
use crate::gateway::TokenSettings;
use crate::gateway::tokens::KeySource;
use crate::rules::client::{ForwardingHeader, Networks, Prefix, TrustedProxies};
use crate::rules::decision::Policy;
use crate::rules::jwt::{InvalidKeySet, KeySet, TokenPlace, Validity};
use crate::rules::key::Selector;
use crate::wire::http_client::{DocumentUrl, RemoteDocument};
use crate::words::units::Span;

impl Compiler {
    /// The trusted proxies. Also sets the address prefix of one client.
    pub(super) fn clients(&mut self, document: &Document) -> TrustedProxies {
        let Some(client) = document.client_ip.get() else {
            return TrustedProxies::new(Vec::new(), ForwardingHeader::default());
        };
        self.prefix = self.prefix(&client.ipv4_prefix, &client.ipv6_prefix);
        let header = client.header.get().and_then(|name| self.forwarding_header(name));
        let mut networks = Vec::new();
        if let Some(proxies) = client.trusted_proxies.get() {
            self.refuse_everyone(proxies, "trusts everyone: any client could write any address into the header");
            networks.extend(proxies.items.iter().map(|network| network.value));
            if proxies.is_empty() && !client.header.is_absent() {
                self.unused_header(client.header.key());
            }
        } else if client.trusted_proxies.is_absent() {
            self.unused_header(client.header.key());
        }
        TrustedProxies::new(networks, header.unwrap_or_default())
    }

    /// A prefix for each address family. The default is the prefix of the `client_ip` section.
    pub(super) fn prefix(&mut self, v4: &Field<Spanned<u64>>, v6: &Field<Spanned<u64>>) -> Prefix {
        Prefix {
            v4: self.bits(v4, grammar::IPV4_PREFIX, self.prefix.v4),
            v6: self.bits(v6, grammar::IPV6_PREFIX, self.prefix.v6),
        }
    }

    fn bits(&mut self, field: &Field<Spanned<u64>>, bounds: Bounds, default: u8) -> u8 {
        let Some(Spanned { value, at }) = field.get() else { return default };
        match u8::try_from(*value) {
            Ok(bits) if bounds.contain(bits.into()) => bits,
            _ => {
                let most = bounds.most;
                let message = format!("`{value}` is not a prefix length, expected 1 to {most}");
                let help = if *value == 0 {
                    format!(
                        "write one such as `{most}`, a whole address; all requests together are counted with `key: []`"
                    )
                } else {
                    format!("write at most `{most}`, a whole address")
                };
                self.mistakes.report(*at, message, help);
                default
            }
        }
    }

    fn forwarding_header(&mut self, name: &Text) -> Option<ForwardingHeader> {
        match name.value.to_ascii_lowercase().as_str() {
            "x-forwarded-for" => Some(ForwardingHeader::XForwardedFor),
            "forwarded" => Some(ForwardingHeader::Forwarded),
            _ if self.refuse_glob(name, "the name of a header", "name one, such as `cf-connecting-ip`") => None,
            single => {
                let Ok(header) = single.parse() else {
                    let message = format!("`{}` is not a header name", name.value);
                    let help =
                        "write `x-forwarded-for`, `forwarded`, or a header of one address such as `cf-connecting-ip`";
                    self.mistakes.report(name.at, message, help);
                    return None;
                };
                Some(ForwardingHeader::Single(header))
            }
        }
    }

    /// Refuses networks of proxies that hold everyone, one alone or all together: such clients choose their address.
    /// `harm` says what that does.
    pub(super) fn refuse_everyone(&mut self, networks: &OneOrList<Spanned<IpNet>>, harm: &str) {
        let help = "name only the networks of your proxies, such as `10.1.2.0/24`";
        let alone: Vec<_> = networks.items.iter().filter(|network| network.value.prefix_len() == 0).collect();
        for network in &alone {
            self.mistakes.report(network.at, format!("`{}` {harm}", network.value), help);
        }
        let together = Networks::new(networks.items.iter().map(|network| network.value)).whole_family();
        if let (true, Some(family)) = (alone.is_empty(), together) {
            self.mistakes.report(networks.at, format!("these networks together are `{family}`, which {harm}"), help);
        }
    }

    fn unused_header(&mut self, key: Option<crate::config::source::SourceRange>) {
        if let Some(at) = key {
            self.mistakes.report(
                at,
                "`header` is never read, because no proxy is trusted",
                "add `trusted_proxies:` with the networks of your proxies, or remove `header`",
            );
        }
    }
}

impl Compiler {
    /// How tokens are verified; `None`: they are not.
    pub(super) fn tokens(&mut self, document: &Document) -> Option<TokenSettings> {
        let jwt = document.jwt.get()?;
        // Each is checked even if another is invalid, so that every mistake is reported.
        let keys = self.key_source(jwt);
        let place = self.token_place(&jwt.from);
        let validity = Validity {
            issuers: self.expected(&jwt.issuer, "issuer", "https://id.example.com"),
            audiences: self.expected(&jwt.audience, "audience", "api"),
            leeway: self.leeway(jwt),
        };
        Some(TokenSettings { place: place?, validity, keys: keys? })
    }

    /// Warns of tokens that would be verified for nothing.
    pub(super) fn warn_of_unread_claims(&mut self, document: &Document, policy: &Policy) {
        if let Some(jwt) = document.jwt.get().filter(|_| !policy.reads_claims()) {
            let help = "count by a claim, such as `key: jwt.sub`, or remove `jwt`";
            self.mistakes.warn(jwt.at, "no limit reads what tokens claim, so none is verified", help);
        }
    }

    fn key_source(&mut self, jwt: &raw::document::Jwt) -> Option<KeySource> {
        if let (Some(file), Some(_)) = (jwt.jwks_file.key(), jwt.jwks_url.key()) {
            self.mistakes.report(file, "`jwks_file` and `jwks_url` exclude each other", "remove one of the two");
        }
        if jwt.jwks_file.is_absent() && jwt.jwks_url.is_absent() {
            let help = "name the public keys of the issuer: `jwks_file: keys.json`, or `jwks_url: https://...`";
            self.mistakes.report(jwt.at, "`jwt` has no keys", help);
        }
        if let (Some(ca), false) = (jwt.ca.key(), jwt.jwks_file.is_absent()) {
            self.mistakes.report(ca, "`ca` has no effect on a file", "remove it, or fetch the keys from `jwks_url`");
        }
        let file = jwt.jwks_file.get().and_then(|file| self.key_file(file)).map(KeySource::File);
        let url = jwt.jwks_url.get().and_then(|url| self.key_url(url, &jwt.ca)).map(KeySource::Url);
        file.or(url)
    }

    fn key_file(&mut self, name: &Text) -> Option<Arc<KeySet>> {
        let NamedFile { path, content } = self.file(name, "key set")?;
        let error = match KeySet::parse(content.as_bytes()) {
            Ok(set) => {
                if set.holds_secrets {
                    let message = format!(
                        "`{}` holds private keys or secrets, and public keys are all that is needed",
                        name.value
                    );
                    self.mistakes.warn(name.at, message, "remove them: who reads the file can sign tokens");
                }
                return Some(Arc::new(set));
            }
            Err(error) => error,
        };
        let help = "write a JWK set with the public keys of the issuer: `{\"keys\": [{\"kty\": \"EC\", ...}]}`";
        match &error {
            InvalidKeySet::NotJson(error) => {
                let message = "a key set is one JSON object that repeats no name, and this is none";
                let (line, column) = (error.line().max(1), error.column().max(1));
                self.mistakes.push(Diagnostic::new(&path, line, column, message).help(help));
            }
            _ => self.mistakes.report(name.at, format!("`{}` is no set of keys: {error}", name.value), help),
        }
        None
    }

    fn key_url(&mut self, text: &Text, ca: &Field<Text>) -> Option<RemoteDocument> {
        let ca = ca.get().map(|file| self.authorities_of_server(file));
        let url = DocumentUrl::parse(&text.value).map_err(InvalidValue::from);
        let url =
            url.map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help)).ok()?;
        match ca {
            Some(None) => None,
            ca => Some(RemoteDocument::new(url, ca.flatten())),
        }
    }

    fn token_place(&mut self, from: &Field<Text>) -> Option<TokenPlace> {
        let Some(text) = from.get() else {
            return from.is_absent().then(TokenPlace::default);
        };
        let help = "write `bearer`, or where else the application looks for the token: `cookie.access_token` or `header.x-access-token`";
        match text.value.parse() {
            Ok(Selector::Bearer) => return Some(TokenPlace::Bearer),
            Ok(Selector::Cookie(name)) => return Some(TokenPlace::Cookie(name)),
            Ok(Selector::Header(name)) if name.as_str() == "authorization" => {
                self.mistakes.report(
                    text.at,
                    "a token in `authorization` comes after a scheme",
                    "write `from: bearer`",
                );
            }
            Ok(Selector::Header(name)) => return Some(TokenPlace::Header(name)),
            Ok(other) => self.mistakes.report(text.at, format!("no token is looked for in `{other}`"), help),
            Err(_) => self.mistakes.report(text.at, format!("`{}` is no place of a token", text.value), help),
        }
        None
    }

    /// The values that are accepted: a token must have one of them.
    fn expected(&mut self, field: &Field<OneOrList<Text>>, name: &str, example: &str) -> Vec<String> {
        let Some(values) = field.get() else { return Vec::new() };
        if values.is_empty() {
            let help = format!("write one, `{name}: {example}`, or remove the key");
            self.mistakes.report(
                values.at,
                format!("the list of `{name}` is empty, so that no token could be valid"),
                help,
            );
        }
        for value in values.items.iter().filter(|value| value.value.is_empty()) {
            self.mistakes.report(value.at, format!("the `{name}` is empty"), format!("write one: `{name}: {example}`"));
        }
        values.items.iter().map(|value| value.value.clone()).collect()
    }

    fn leeway(&mut self, jwt: &raw::document::Jwt) -> Duration {
        let Some(leeway) = jwt.leeway.get() else { return Validity::LEEWAY };
        let Span(span) = leeway.value;
        if span > LONGEST_LEEWAY {
            let message = "a token would be valid for more than an hour after its end";
            self.mistakes.report(leeway.at, message, "write one such as `30s`, and set the clock of this machine");
        }
        span
    }
}

// The `jwt` section.

const LONGEST_LEEWAY: Duration = grammar::LEEWAY.longest().0;
