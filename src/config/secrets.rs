//! Which values of a configuration hold a secret, by where they stand, and how each is masked.

use std::collections::BTreeMap;

use crate::config::source::SourceRange;
use crate::words::secret;
use crate::words::secret::MASK;
use crate::words::units::nearest;

const SECRET_NAMES: [&str; 9] =
    ["auth", "token", "key", "secret", "cookie", "session", "pass", "signature", "credential"];

/// No keys of ours: what stands there was probably meant to be in a file.
const PASSWORDS: [&str; 7] = ["pass", "pw", "pwd", "credentials", "hs256", "values", "x_auth"];

/// Words in keys such as these.
const PASSWORD_WORDS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "authorization"];

/// Words that are misspelt more often than others.
const PASSWORD_SPELLINGS: [&str; 3] = ["password", "secret", "token"];

/// The keys below which no webhook is looked for: their texts have to be seen, so that a mistake is.
const PUBLIC: [&str; 18] = [
    "listen",
    "client_ip",
    "upstream",
    "access",
    "key",
    "rate",
    "by",
    "of",
    "pages",
    "deny_response",
    "outcome",
    "known_clients",
    "sessions",
    "headers",
    "audit",
    "log",
    "tracing",
    "server",
];

/// The place of a value, as far as it decides which part of the value is secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// In the document, or below a key that is not known.
    Document,
    /// Below a key that has no webhooks.
    Public,
    /// In `notify`, of the document or of a limit.
    Notify,
    /// The value of `webhook`.
    Webhook,
    /// In `store`: what has an `@` may be the URL of a Redis.
    Store,
    /// What people name themselves: the values of the names have no webhooks.
    Names,
    /// In a section that others give a key instead of a file with one.
    Keyed,
    /// In `match`.
    Match,
    /// The globs for each name, in `match`: of headers or query parameters.
    NamedGlobs,
    CookieGlobs,
    /// A glob that may be written as a whole secret.
    SecretGlob,
    /// Below a key such as `password`.
    Whole,
}

/// Which part of a text is secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SecretPart {
    /// User names and passwords in URLs, and tokens in their queries.
    Credentials,
    /// Everything before the last `@` that is no scheme: a password may hold anything.
    BeforeAt,
    /// The text after the host of a URL, and user names and passwords.
    Path,
    /// What follows a name, as in `Authorization: Bearer x`.
    Value,
    Everything,
}

impl Place {
    /// The place of the values below a key.
    pub(super) fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Notify, "every") | (Self::Names, _) => Self::Public,
            (Self::Webhook | Self::Whole | Self::SecretGlob | Self::Notify, _) => self,
            (Self::Match, "header" | "headers" | "query") => Self::NamedGlobs,
            (Self::Match, "cookie" | "cookies") => Self::CookieGlobs,
            (Self::CookieGlobs | Self::NamedGlobs, name) if self == Self::CookieGlobs || names_a_secret(name) => {
                Self::SecretGlob
            }
            (Self::Match | Self::NamedGlobs | Self::CookieGlobs, _) => Self::Public,
            (Self::Keyed, "key" | "keys" | "jwk" | "signing_key" | "bearer" | "basic_auth") => Self::Whole,
            (_, key) if holds_a_password(key) || key == "auth" && self != Self::Document => Self::Whole,
            (Self::Store, _) | (_, "store" | "redis") => Self::Store,
            (_, "upstreams" | "lists" | "descriptor" | "except") => Self::Names,
            (_, "jwt" | "crowdsec" | "admin") => Self::Keyed,
            (Self::Document, "match") => Self::Match,
            (_, key) if PUBLIC.contains(&key) => Self::Public,
            (_, key) => match nearest(key, &["webhook", "notify"]) {
                Some("webhook") => Self::Webhook,
                Some(_) => Self::Notify,
                None => self,
            },
        }
    }

    /// Which part of a value is secret here.
    pub(super) fn secret_part(self, text: &str) -> SecretPart {
        match self {
            _ if text.contains("PRIVATE KEY-----") => SecretPart::Everything,
            Self::Webhook | Self::Notify => SecretPart::Path,
            Self::Document if secret::looks_like_webhook(text) => SecretPart::Path,
            Self::Store if text.contains('@') => SecretPart::BeforeAt,
            Self::SecretGlob if !text.chars().all(|letter| matches!(letter, '*' | '?')) => SecretPart::Everything,
            Self::Whole => SecretPart::Everything,
            Self::CookieGlobs => SecretPart::Value,
            Self::NamedGlobs if text.split([':', '=']).next().is_some_and(names_a_secret) => SecretPart::Value,
            _ if secret::is_misspelt_with_password(text) => SecretPart::BeforeAt,
            _ => SecretPart::Credentials,
        }
    }
}

impl SecretPart {
    /// The text with stars in place of the secret. The length stays the same, so that carets still fit.
    pub(super) fn starred(self, text: &str) -> String {
        match self {
            Self::Credentials => without_tokens(&secret::masked(text)),
            Self::BeforeAt => secret::before_at(text),
            Self::Path => {
                let starred = secret::without_path(&secret::masked(text));
                if starred.contains("*@") { starred } else { secret::before_at(&starred) }
            }
            Self::Value => {
                let name = text.find([':', '=']).map_or(text.len(), |end| end + 1);
                let blank = text[name..].chars().take_while(|letter| letter.is_whitespace()).count();
                let shown = text[..name].chars().count() + blank;
                text.chars().enumerate().map(|(at, letter)| if at < shown { letter } else { '*' }).collect()
            }
            Self::Everything => text.chars().map(|_| '*').collect(),
        }
    }

    /// The text without the secret, and without its length.
    pub(super) fn hidden(self, text: &str) -> String {
        if self == Self::Everything {
            return MASK.to_owned();
        }
        let starred = self.starred(text);
        if starred == text { starred } else { secret::shortened(&starred) }
    }
}

/// Whether a header or parameter of that name usually holds a secret.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Whether a key, which is none of ours, holds a password or a token.
fn holds_a_password(key: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    let is_other = ["file", "url", "path", "tokens"].iter().any(|end| key.ends_with(end))
        // A selector, and the algorithm.
        || key.contains('.')
        || key.starts_with("token_bucket");
    let has_word = || PASSWORD_WORDS.iter().any(|word| key.contains(word));
    !is_other && (PASSWORDS.contains(&key.as_str()) || has_word() || nearest(&key, &PASSWORD_SPELLINGS).is_some())
}

/// Masks the values of parameters that usually hold a secret. The length stays the same.
fn without_tokens(url: &str) -> String {
    let Some(query) = url.find('?').map(|at| at + 1) else { return url.to_owned() };
    let starred = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if names_a_secret(name) => {
            let kept = value.find(|letter: char| letter.is_whitespace() || matches!(letter, '`' | '#'));
            let (value, rest) = value.split_at(kept.unwrap_or(value.len()));
            let stars: String = value.chars().map(|_| '*').collect();
            format!("{name}={stars}{rest}")
        }
        _ => parameter.to_owned(),
    };
    url[..query].to_owned() + &url[query..].split('&').map(starred).collect::<Vec<_>>().join("&")
}

// The places of the secrets of a source, so that its lines can be shown without them.

/// The secrets of a source, by the values that hold them.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownSecrets {
    /// By the place where the value begins.
    values: BTreeMap<Position, Secret>,
    /// Where values of several lines end.
    ends: BTreeMap<Position, Position>,
    /// Whether the source was read to its end, so that all of them are known.
    pub(super) are_all: bool,
}

#[derive(Clone, Debug)]
struct Secret {
    part: SecretPart,
    text: String,
    /// In characters, on its line.
    length: usize,
}

/// A line and a column, both from 1.
type Position = (u32, u32);

impl KnownSecrets {
    /// Notes a secret. Of an anchor, which stands in several places, the place counts in which most of it is secret.
    pub(super) fn insert(&mut self, at: SourceRange, part: SecretPart, text: &str) {
        let stars = |part: SecretPart| part.starred(text).chars().filter(|letter| *letter == '*').count();
        let secret = Secret { part, text: text.to_owned(), length: at.length as usize };
        match self.values.get(&(at.line, at.column)) {
            Some(known) if !known.text.is_empty() && stars(known.part) >= stars(part) => {}
            _ => drop(self.values.insert((at.line, at.column), secret)),
        }
    }

    /// Notes a URL that is none, and may hold a password.
    pub(super) fn insert_url(&mut self, at: SourceRange) {
        let secret = Secret { part: SecretPart::BeforeAt, text: String::new(), length: at.length as usize };
        self.values.entry((at.line, at.column)).or_insert(secret);
    }

    /// Notes where a value of several lines ends.
    pub(super) fn ends_at(&mut self, at: SourceRange, line: u32, column: u32) {
        self.ends.insert((at.line, at.column), (line, column));
    }

    /// A message about the value at a place. It may repeat what stands in the value, whole or in part.
    pub(super) fn message(&self, at: SourceRange, message: &str) -> String {
        let here = self.values.get(&(at.line, at.column));
        let mut message = message.to_owned();
        for secret in self.values.values().filter(|secret| !secret.text.is_empty()) {
            message = secret.masked_in(&message);
        }
        if let Some(secret) = here {
            message = secret.parts_masked_in(&message);
            if secret.part == SecretPart::Path {
                message = secret::without_paths(&message);
            }
        }
        secret::masked(&message)
    }

    /// A line, in which only the secrets are masked. The length stays the same, so that carets still fit.
    pub(super) fn line(&self, number: u32, line: &str) -> String {
        let mut letters: Vec<char> = line.chars().collect();
        for (begin, secret) in self.values.range((number, 0)..(number.saturating_add(1), 0)) {
            let start = begin.1.saturating_sub(1) as usize;
            let end = (start + secret.length).min(letters.len());
            if let Some(written) = letters.get_mut(start..end) {
                let shown = secret.starred(&written.iter().collect::<String>());
                written.iter_mut().zip(shown.chars()).for_each(|(letter, shown)| *letter = shown);
            }
        }
        // A secret of several lines is hidden completely.
        for (begin, end) in self.ends.iter().filter(|(begin, _)| self.values.contains_key(begin)) {
            if (begin.0..=end.0).contains(&number) {
                let from = if number == begin.0 { begin.1.saturating_sub(1) as usize } else { 0 };
                let to = if number == end.0 { end.1.saturating_sub(1) as usize } else { letters.len() };
                star(&mut letters, from, to);
            }
        }
        letters.into_iter().collect()
    }
}

impl Secret {
    /// Without the value, where the message has it in quotes, or as JSON writes it.
    fn masked_in(&self, message: &str) -> String {
        /// Shorter texts stand in words too.
        const LETTERS: usize = 6;
        let starred = self.part.starred(&self.text);
        if self.text.len() < LETTERS {
            return message.replace(&format!("`{}`", self.text), &format!("`{starred}`"));
        }
        let json = |text: &str| serde_json::Value::from(text).to_string();
        message.replace(&json(&self.text), &json(&starred)).replace(&self.text, &starred)
    }

    /// Without the pieces of the secret. A message may be about a part of the value.
    fn parts_masked_in(&self, message: &str) -> String {
        /// What stands before a secret in a URL.
        const SCHEMES: [&str; 7] = ["http", "https", "redis", "rediss", "valkey", "valkeys", "unix"];
        let starred = self.part.starred(&self.text);
        let hidden = self.text.chars().zip(starred.chars());
        // What is shown ends a piece.
        let secret: String = hidden.map(|(letter, shown)| if shown == '*' { letter } else { ' ' }).collect();
        let pieces = secret.split(|letter: char| letter.is_whitespace() || ":/?&=\\\"'`".contains(letter));
        let stars = |piece: &str| piece.chars().map(|_| '*').collect::<String>();
        pieces.filter(|piece| piece.len() >= 4 && !SCHEMES.contains(piece)).fold(
            message.to_owned(),
            |message, piece| {
                if !piece.chars().all(|letter| letter.is_ascii_lowercase()) {
                    return message.replace(piece, &stars(piece));
                }
                // A word of ours too, perhaps: what is repeated of the value stands in quotes.
                let parts = message.split('`').enumerate();
                let is_repeated = |at: usize| at % 2 == 1 && self.part != SecretPart::Path;
                parts
                    .map(
                        |(at, part)| if is_repeated(at) { part.replace(piece, &stars(piece)) } else { part.to_owned() },
                    )
                    .collect::<Vec<_>>()
                    .join("`")
            },
        )
    }

    /// The value as it is written, quotes and all.
    fn starred(&self, written: &str) -> String {
        let quote = written.chars().next().filter(|first| matches!(first, '"' | '\''));
        let inside = quote.and_then(|quote| written.strip_prefix(quote)?.strip_suffix(quote));
        let (quote, inside) = match (quote, inside) {
            (Some(quote), Some(inside)) => (quote.to_string(), inside),
            _ => (String::new(), written),
        };
        let is_variable =
            inside.strip_prefix("${").and_then(|name| name.strip_suffix('}')).is_some_and(|name| !name.contains(":-"));
        if is_variable {
            return written.to_owned();
        }
        // Letters may be written as numbers.
        let is_escaped = quote == "\"" && inside.replace("\\/", "").contains('\\');
        let part = if is_escaped { SecretPart::Everything } else { self.part };
        format!("{quote}{}{quote}", part.starred(inside))
    }
}

fn star(letters: &mut [char], from: usize, to: usize) {
    let to = to.min(letters.len());
    if let Some(written) = letters.get_mut(from..to) {
        let indented = written.iter().take_while(|letter| letter.is_whitespace()).count();
        written[indented..].fill('*');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &[&str], text: &str, expected: &str) {
        let place = keys.iter().fold(Place::Document, |place, key| place.below(key));
        assert_eq!(place.secret_part(text).hidden(text), expected, "{keys:?}");
    }

    #[test]
    fn the_place_says_what_is_secret() {
        check(&["notify", "ops", "webhook"], "https://h.example/T0/x", "https://h.example/***");
        check(&["notify", "ops", "webhok"], "https://h.example/T0/x", "https://h.example/***");
        check(&["notify", "ops", "every"], "five/minute", "five/minute");
        check(&["limits", "then", "notify"], "h.example/T0", "h.example/***");
        check(&["slack"], "https://hooks.example/T0", "https://hooks.example/***");
        check(&["upstream"], "https://hooks.example/T0", "https://hooks.example/T0");
        check(&["upstream"], "http://u:p@h/x", "http://***@h/x");
        check(&["limits", "rate"], "five/minute", "five/minute");
        check(&["store", "redis", "url"], "u:p/w@h", "***@h");
        check(&["store", "redis"], "u:p/w@h", "***@h");
        check(&["store", "redis", "password"], "hunter2", "***");
        check(&["routes", "match", "cookie", "session"], "hunter2", "***");
        check(&["routes", "match", "cookie", "session"], "*", "*");
        check(&["routes", "match", "host"], "example.com/a", "example.com/a");
        check(&["routes", "known_clients", "notify"], "https://h.example/T0", "https://h.example/***");
        check(&["routes", "match", "cookies"], "session=hunter2", "session=***");
        check(&["routes", "match", "header"], "Authorization: Bearer hunter2", "Authorization: ***");
        check(&["routes", "match", "path"], "/a?token=hunter2&b=1", "/a?token=***&b=1");
        check(&["limits", "then"], "hooks.example.com/T0", "hooks.example.com/***");
        check(&["audit", "webhook"], "https://h.example/T0", "https://h.example/***");
        check(&["store", "redis", "uri"], "redis//u:p@h", "***@h");
        check(&["admin", "Token"], "hunter2", "***");
        check(&["jwt", "key"], "hunter2", "***");
        check(&["lists", "c", "crowdsec", "api_key"], "hunter2", "***");
        check(&["tracing", "headers", "authorization"], "hunter2", "***");
        check(&["upstreams", "token", "servers"], "http://10.0.0.1", "http://10.0.0.1");
        check(&["upstream"], "http:/u:p@h", "***@h");
        check(&["upstream"], "u:p@h:80", "***@h:80");
        check(&["upstream"], "http://u:p/w@h", "http://***@h");
        check(&["deny_response", "redirect"], "https://h.example/@team", "https://h.example/@team");
        check(&["deny_response", "body"], "Write to: a@b.example", "Write to: a@b.example");
        check(&["limits", "key", "pattern"], "(?:[^@]+)@", "(?:[^@]+)@");
        check(&["limits", "key", "bearer", "raw"], "true", "true");
    }

    #[test]
    fn a_message_repeats_no_piece_of_a_secret_and_keeps_its_own_words() {
        #[track_caller]
        fn check(part: SecretPart, text: &str, message: &str, expected: &str) {
            let at = SourceRange { source: 0, line: 1, column: 1, length: 1 };
            let mut secrets = KnownSecrets::default();
            secrets.insert(at, part, text);
            assert_eq!(secrets.message(at, message), expected);
            // The help for a list repeats what stands in it.
            let list = format!("write `{{first: [{}]}}`", serde_json::Value::from(text));
            let shown = secrets.message(SourceRange { column: 9, ..at }, &list);
            assert!(!shown.contains("hunter"), "{shown}");
        }
        let (of_user, url) = (SecretPart::BeforeAt, "http://user:hunter @h");
        check(of_user, url, "`http://user:hunter` is not a method", "`http://****:******` is not a method");
        check(of_user, url, "a URL here has no user name", "a URL here has no user name");
        check(of_user, "rediss:u:hunter2@h", "a url begins with `rediss://`", "a url begins with `rediss://`");
        let hook = "https://h.example/services/\"hunter2";
        check(SecretPart::Path, hook, "a webhook of services", "a webhook of services");
        check(
            SecretPart::Everything,
            "-----hunter2\nx",
            "no file `/etc/-----hunter2\nx`",
            "no file `/etc/**************`",
        );
    }

    #[test]
    fn no_key_of_ours_holds_a_password() {
        fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
            if let Some(properties) = schema["properties"].as_object() {
                found.extend(properties.keys().cloned());
            }
            match schema {
                serde_json::Value::Object(map) => map.values().for_each(|below| keys(below, found)),
                serde_json::Value::Array(items) => items.iter().for_each(|below| keys(below, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        keys(&crate::config::schema(), &mut found);
        let taken: Vec<_> = found.iter().filter(|key| holds_a_password(key)).collect();
        assert!(found.len() > 100 && taken.is_empty(), "{taken:?}");
    }
}
