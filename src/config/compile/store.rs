//! The `store` section, and `on_failure` and `leases` of limits.

use std::path::PathBuf;

use crate::config::compile::document::Compiler;
use crate::config::raw;
use crate::config::raw::store::Leases;
use crate::config::raw::{Document, Field, InvalidValue, Spanned, Text, grammar};
use crate::rules::limit::OnFailure;
use crate::store::StoreSettings;
use crate::store::any_store::Nodes;
use crate::store::memory::MemorySettings;
use crate::store::redis::transport::connect::Url;
use crate::store::redis::{HashSlot, Mode, RedisSettings};
use crate::words::units::nearest;

impl Compiler {
    pub(super) fn store(&mut self, document: &Document) -> StoreSettings {
        let snapshot =
            document.store.get().and_then(|store| store.memory.get()).and_then(|memory| memory.snapshot.get());
        let snapshot = snapshot.and_then(|text| self.output(text));
        let (max_keys, max_sessions) = (self.max_keys(document), self.max_sessions(document));
        let memory = MemorySettings { max_keys, max_sessions, snapshot };
        let mut settings =
            StoreSettings { memory, redis: None, on_failure: OnFailure::default(), nodes: Nodes::default() };
        let Some(store) = document.store.get() else { return settings };
        settings.redis = store.redis.get().map(|redis| self.redis(redis));
        settings.on_failure = default_on_failure(document);
        settings.nodes = store.nodes.get().map(|nodes| nodes.value).unwrap_or_default();
        if store.redis.is_absent() {
            let without = [
                (store.on_failure.key(), "on_failure", "sets what to do while Redis does not answer"),
                (store.nodes.key(), "nodes", "sets how many gateways share a Redis"),
                (store.leases.key(), "leases", "sets whether gateways that share a Redis hold units of limits"),
            ];
            for (at, key, says) in without.into_iter().filter_map(|(at, key, says)| Some((at?, key, says))) {
                let message = format!("`{key}` {says}, and there is no `redis` beside it");
                self.mistakes.report(at, message, WITHOUT_REDIS);
            }
        }
        settings
    }

    /// What to do with requests of a limit while Redis is down.
    pub(super) fn on_failure(&mut self, field: &Field<Spanned<OnFailure>>) -> OnFailure {
        let Some(value) = field.get() else { return self.on_failure };
        if let Some(at) = field.key().filter(|_| !self.has_redis) {
            let message = "`on_failure` sets what to do while Redis does not answer, and there is no `store.redis`";
            self.mistakes.report(at, message, WITHOUT_REDIS);
        }
        value.value
    }

    /// Whether gateways may lease units of a limit.
    pub(super) fn leases(&mut self, field: &Field<Spanned<Leases>>) -> bool {
        let Some(value) = field.get() else { return self.leases };
        if let Some(at) = field.key().filter(|_| !self.has_redis) {
            let message = "`leases` sets whether gateways hold units of the limit, and there is no `store.redis`";
            self.mistakes.report(at, message, WITHOUT_REDIS);
        }
        value.value == Leases::Auto
    }

    fn max_keys(&mut self, document: &Document) -> usize {
        let memory = document.store.get().and_then(|store| store.memory.get());
        self.capacity(memory.and_then(|memory| memory.max_keys.get()), "keys", "100 MiB")
            .unwrap_or(MemorySettings::MAX_KEYS)
    }

    fn max_sessions(&mut self, document: &Document) -> usize {
        let memory = document.store.get().and_then(|store| store.memory.get());
        let max_sessions = memory.and_then(|memory| memory.max_sessions.get());
        self.capacity(max_sessions, "sessions", "64 MiB").unwrap_or(MemorySettings::MAX_SESSIONS)
    }

    /// How many `things` are remembered; a million of them take so much `memory`.
    fn capacity(&mut self, number: Option<&Spanned<u64>>, things: &str, memory: &str) -> Option<usize> {
        let Spanned { value, at } = number?;
        if grammar::CAPACITY.contain(*value) {
            return Some(self.size(*value, *at));
        }
        self.mistakes.report(
            *at,
            format!("`{value}` is not a possible number of {things}"),
            format!("write a number from `1` to `{}`; a million {things} take about {memory}", grammar::CAPACITY.most),
        );
        None
    }

    fn redis(&mut self, raw: &raw::store::Redis) -> RedisSettings {
        let mode = raw.mode.get().map(|mode| mode.value).unwrap_or_default();
        let urls = self.urls(raw, mode);
        RedisSettings {
            urls,
            password_file: self.password_file(raw),
            mode,
            timeout: self.span(&raw.timeout, RedisSettings::TIMEOUT),
            wait: self.replicas(&raw.wait),
            key_prefix: self.key_prefix(&raw.key_prefix),
            hash_slot: self.hash_slot(raw, mode),
        }
    }

    /// The file that holds the password.
    fn password_file(&mut self, raw: &raw::store::Redis) -> Option<PathBuf> {
        let file = raw.password_file.get()?;
        let has_password = |url: &Text| url.value.parse::<Url>().is_ok_and(|url| url.has_password());
        if raw.url.get().is_some_and(|urls| urls.items.iter().any(has_password)) {
            self.mistakes.report(
                file.at,
                "the url has a password, and `password_file` another one",
                "remove the password from the url; a user stays there, before the `@`",
            );
        }
        self.secret(file, "password", "`ACL SETUSER` or `requirepass` sets it in Redis")?;
        Some(self.base.join(&file.value))
    }

    fn replicas(&mut self, wait: &Field<Spanned<u64>>) -> u32 {
        let Some(Spanned { value, at }) = wait.get() else { return RedisSettings::WAIT };
        match u32::try_from(*value) {
            Ok(replicas) if grammar::REPLICAS.contain(*value) => replicas,
            Ok(_) | Err(_) => {
                let message = format!("`{value}` replicas are more than a server has");
                self.mistakes.report(
                    *at,
                    message,
                    format!("write a number from 0 to {}, such as `1`", grammar::REPLICAS.most),
                );
                RedisSettings::WAIT
            }
        }
    }

    fn hash_slot(&mut self, raw: &raw::store::Redis, mode: Mode) -> HashSlot {
        let Some(Spanned { value: HashSlot::Client, at }) = raw.hash_slot.get() else {
            return HashSlot::Key;
        };
        if mode != Mode::Cluster && !is_wrong(&raw.mode) {
            let message = "`hash_slot: client` is for a cluster: one server decides all limits in one call anyway";
            self.mistakes.report(*at, message, "remove it, or add `mode: cluster`");
        }
        if raw.key_prefix.get().is_some_and(|prefix| prefix.value.contains('{')) {
            let message =
                "the `{` in `key_prefix` decides the hash slot of every key, so `hash_slot: client` would not";
            self.mistakes.report(*at, message, "remove it, or the braces in `key_prefix`");
        }
        HashSlot::Client
    }

    fn urls(&mut self, raw: &raw::store::Redis, mode: Mode) -> Vec<Url> {
        let Some(urls) = raw.url.get() else { return Vec::new() };
        if urls.is_empty() {
            self.mistakes.report(urls.at, "the list of urls is empty", EXAMPLE);
        }
        if let (Mode::Single, [_, second, ..], false) = (mode, &urls.items[..], is_wrong(&raw.mode)) {
            self.mistakes.report(
                second.at,
                "`mode: single` takes one url, and there are several",
                "add `mode: cluster` or `mode: sentinel`, or keep one url",
            );
        }
        let read: Vec<_> = urls.items.iter().filter_map(|url| Some((url.at, self.url(url, mode)?))).collect();
        if let Some(((_, first), others)) = read.split_first() {
            for (at, other) in others {
                if let Some(differs) = first.differs(other) {
                    let message =
                        format!("this url has another {differs} than the first one, and all urls belong to one store");
                    self.mistakes.report_secret(*at, message, format!("give every url the same {differs}"));
                }
            }
        }
        read.into_iter().map(|(_, url)| url).collect()
    }

    /// Messages do not show the URL: it may hold a password.
    fn url(&mut self, text: &Text, mode: Mode) -> Option<Url> {
        let (scheme, rest) = text.value.split_once("://").unwrap_or(("", &text.value));
        if !SCHEMES.contains(&scheme) {
            let (message, help) = wrong_scheme(scheme, rest);
            self.mistakes.report_secret(text.at, message, help);
            return None;
        }
        let (authority, path) = if scheme == SOCKET { ("", "") } else { rest.split_once('/').unwrap_or((rest, "")) };
        let is_database = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let wrong = if authority.contains(['#', '?']) || path.contains(['#', '?', '@']) {
            let message = "a Redis url must not contain `#`, `?`, or a `/` before its `@`";
            Some((message, "in a password write `%23` for `#`, `%3F` for `?` and `%2F` for `/`; remove them elsewhere"))
        } else if mode != Mode::Sentinel && !is_database(path) {
            let message = "the path of a Redis url must be the number of a database";
            Some((message, "write one such as `redis://127.0.0.1:6379/0`, or nothing after the port"))
        } else if mode == Mode::Cluster && path.bytes().any(|byte| byte != b'0') {
            Some(("a cluster has only database 0", "remove the number"))
        } else {
            None
        };
        if let Some((message, help)) = wrong {
            self.mistakes.report_secret(text.at, message, help);
            return None;
        }
        let url = text.value.parse::<Url>().map_err(InvalidValue::from);
        url.map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help)).ok()
    }

    fn key_prefix(&mut self, field: &Field<Text>) -> String {
        let Some(Text { value, at }) = field.get() else { return RedisSettings::KEY_PREFIX.to_owned() };
        let help = "write the literal beginning of the keys, such as `portcullis`";
        if let Some(text) = field.get().filter(|text| self.refuse_glob(text, "a `key_prefix`", help)) {
            return text.value.clone();
        }
        let wrong = if value.is_empty() {
            "an empty `key_prefix` would mix our keys with those of other programs".to_owned()
        } else if value.len() > LONGEST_KEY_PREFIX {
            format!("this `key_prefix` is {} bytes long", value.len())
        } else if let Some(odd) = value.chars().find(|c| c.is_whitespace() || c.is_control()) {
            format!("this `key_prefix` contains {odd:?}")
        } else {
            return value.clone();
        };
        let (most, usual) = (LONGEST_KEY_PREFIX, RedisSettings::KEY_PREFIX);
        let help = format!("write at most {most} bytes without spaces, such as `{usual}`");
        self.mistakes.report(*at, wrong, help);
        RedisSettings::KEY_PREFIX.to_owned()
    }
}

/// The default `on_failure` of limits.
pub(super) fn default_on_failure(document: &Document) -> OnFailure {
    let on_failure = document.store.get().and_then(|store| store.on_failure.get());
    on_failure.map(|on_failure| on_failure.value).unwrap_or_default()
}

/// Whether gateways may lease units of limits that do not say.
pub(super) fn default_leases(document: &Document) -> bool {
    let leases = document.store.get().and_then(|store| store.leases.get());
    leases.map(|leases| leases.value).unwrap_or_default() == Leases::Auto
}

/// Whether a Redis is configured, even with mistakes.
pub(super) fn has_redis(document: &Document) -> bool {
    match &document.store {
        Field::Given { value, .. } => !value.redis.is_absent(),
        Field::Invalid => true,
        Field::Absent => false,
    }
}

fn is_wrong<T>(field: &Field<T>) -> bool {
    matches!(field, Field::Invalid)
}

/// A message and a help text for a URL with an unknown scheme. The message repeats only what looks like a scheme.
fn wrong_scheme(scheme: &str, rest: &str) -> (String, String) {
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if scheme.is_empty() || !is_word(scheme) {
        let is_plain_address = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]/".contains(&byte));
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let help = if is_plain_address && has_port { format!("write `redis://{rest}`") } else { EXAMPLE.to_owned() };
        return ("a Redis url begins with `redis://` or `rediss://`".to_owned(), help);
    }
    let help = match scheme {
        "tls" | "https" | "redis+tls" | "redis+ssl" => "write `rediss://` for Redis over TLS".to_owned(),
        _ => match nearest(scheme, &SCHEMES) {
            Some(near) => format!("did you mean `{near}://`?"),
            None => "write `redis://`, or `rediss://` for TLS".to_owned(),
        },
    };
    (format!("`{scheme}://` is not a scheme of Redis"), help)
}

const SCHEMES: [&str; 5] = ["redis", "rediss", "valkey", "valkeys", SOCKET];

/// A Unix socket, named by its file.
const SOCKET: &str = "unix";

const EXAMPLE: &str = "write one such as `redis://127.0.0.1:6379/0`";

const WITHOUT_REDIS: &str =
    "add `store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}`, or remove it: a store in memory does not fail";

/// Every key begins with it.
const LONGEST_KEY_PREFIX: usize = 64;
