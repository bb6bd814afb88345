//! Which values of a configuration hold a secret, by where they stand, and how each is masked.

use std::collections::BTreeMap;

use crate::config::source::SourceRange;
use crate::words::secret;
use crate::words::secret::MASK;
use crate::words::units::nearest;

const SECRET_NAMES: [&str; 9] =
    ["auth", "token", "key", "secret", "cookie", "session", "pass", "signature", "credential"];

/// No key of ours: what stands there was probably meant to be in a file.
const PASSWORDS: [&str; 5] = ["password", "passwd", "pass", "secret", "token"];

/// The keys below which no webhook is looked for: their texts have to be seen, so that a mistake is.
const PUBLIC: [&str; 22] = [
    "listen",
    "admin",
    "client_ip",
    "store",
    "upstream",
    "upstreams",
    "lists",
    "access",
    "key",
    "rate",
    "deny_response",
    "outcome",
    "known_clients",
    "sessions",
    "descriptor",
    "except",
    "headers",
    "jwt",
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
    /// In `redis`.
    Redis,
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
    /// User names and passwords in URLs.
    Credentials,
    /// Everything before the last `@` that is no scheme: a password may hold anything.
    BeforeAt,
    /// The text after the host of a URL, and user names and passwords.
    Path,
    Everything,
}

impl Place {
    /// The place of the values below a key.
    pub(super) fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Notify, "every") => Self::Public,
            (Self::Webhook | Self::Whole | Self::SecretGlob | Self::Notify, _) => self,
            (Self::Match, "header" | "query") => Self::NamedGlobs,
            (Self::Match, "cookie") => Self::CookieGlobs,
            (Self::CookieGlobs | Self::NamedGlobs, name) if self == Self::CookieGlobs || names_a_secret(name) => {
                Self::SecretGlob
            }
            (Self::Redis, "url") | (Self::Public | Self::Document, "redis") => Self::Redis,
            (Self::Document | Self::Redis, key) if PASSWORDS.contains(&key) => Self::Whole,
            (Self::Document, key) => Self::in_document(key),
            _ => Self::Public,
        }
    }

    fn in_document(key: &str) -> Self {
        match key {
            "match" => Self::Match,
            key if PUBLIC.contains(&key) => Self::Public,
            key => match nearest(key, &["webhook", "notify"]) {
                Some("webhook") => Self::Webhook,
                Some(_) => Self::Notify,
                None => Self::Document,
            },
        }
    }

    /// Which part of a value is secret here.
    pub(super) fn secret_part(self, text: &str) -> SecretPart {
        match self {
            Self::Webhook | Self::Notify => SecretPart::Path,
            Self::Document if text.to_ascii_lowercase().contains("hook") && text.contains("://") => SecretPart::Path,
            Self::Redis => SecretPart::BeforeAt,
            Self::SecretGlob if !text.chars().all(|letter| matches!(letter, '*' | '?')) => SecretPart::Everything,
            Self::Whole => SecretPart::Everything,
            _ => SecretPart::Credentials,
        }
    }
}

impl SecretPart {
    /// The text with stars in place of the secret. The length stays the same, so that carets still fit.
    pub(super) fn starred(self, text: &str) -> String {
        match self {
            Self::Credentials => secret::masked(text),
            Self::BeforeAt => secret::before_at(text),
            Self::Path => {
                let starred = secret::without_path(&secret::masked(text));
                if starred.contains("*@") { starred } else { secret::before_at(&starred) }
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
    pub(super) fn insert(&mut self, at: SourceRange, part: SecretPart, text: &str) {
        let secret = Secret { part, text: text.to_owned(), length: at.length as usize };
        self.values.insert((at.line, at.column), secret);
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

    /// A message about the value at a place. Other values are not in it.
    pub(super) fn message(&self, at: SourceRange, message: &str) -> String {
        let message = match self.values.get(&(at.line, at.column)) {
            Some(secret) => {
                let masked = if secret.text.is_empty() { message.to_owned() } else { secret.masked_in(message) };
                if secret.part == SecretPart::Path { secret::without_paths(&masked) } else { masked }
            }
            None => message.to_owned(),
        };
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
    fn masked_in(&self, message: &str) -> String {
        message.replace(&self.text, &self.part.starred(&self.text))
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
    }
}
