//! The `jwt` section.

use std::sync::Arc;
use std::time::Duration;

use super::compiler::Compiler;
use super::files::NamedFile;
use crate::config::diagnostic::Diagnostic;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::InvalidValue;
use crate::config::raw::Text;
use crate::config::raw::forms::OneOrList;
use crate::decision::Policy;
use crate::gateway::TokenSettings;
use crate::gateway::tokens::KeySource;
use crate::http_client::DocumentUrl;
use crate::http_client::RemoteDocument;
use crate::jwt::InvalidKeySet;
use crate::jwt::KeySet;
use crate::jwt::TokenPlace;
use crate::jwt::Validity;
use crate::key::Selector;
use crate::units::Span;

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

    fn key_source(&mut self, jwt: &raw::jwt::Jwt) -> Option<KeySource> {
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

    /// Values of which a token must have one.
    fn expected(&mut self, field: &Field<OneOrList<Text>>, name: &str, example: &str) -> Vec<String> {
        let Some(values) = field.get() else { return Vec::new() };
        if values.items.is_empty() {
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

    fn leeway(&mut self, jwt: &raw::jwt::Jwt) -> Duration {
        let Some(leeway) = jwt.leeway.get() else { return LEEWAY };
        let Span(span) = leeway.value;
        if span > LONGEST_LEEWAY {
            let message = "a token would be valid for more than an hour after its end";
            self.mistakes.report(leeway.at, message, "write one such as `30s`, and set the clock of this machine");
        }
        span
    }
}

/// Where the configuration leaves it out: clocks that are set differ by less.
const LEEWAY: Duration = Duration::from_secs(30);

const LONGEST_LEEWAY: Duration = Duration::from_secs(3600);
