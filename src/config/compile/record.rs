//! The `audit` section.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::compile::document::{Compiler, NamedFile};
use crate::config::raw;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::{Document, Field, InvalidValue, Text, grammar};
use crate::record::audit::{AuditSettings, RedisStream};
use crate::record::notify::{ChannelSettings, NotifySettings, Webhook};
use crate::record::spans::{CollectorUrl, SampleRatio, TracingSettings};
use crate::rules::limit::ChannelId;
use crate::wire::crowdsec::{Bouncer, Lapi, LapiUrl, ListSource, Machine, Secret};
use crate::wire::tls::CaCertificates;

impl Compiler {
    pub(super) fn audit(&mut self, document: &Document) -> AuditSettings {
        let Some(raw) = document.audit.get() else { return AuditSettings::default() };
        if raw.file.is_absent() && raw.redis_stream.is_absent() && raw.sqlite.is_absent() && raw.crowdsec.is_absent() {
            let help = "add one: `file: audit.jsonl`, or remove `audit`";
            self.mistakes.report(raw.at, "`audit` has neither `file`, `redis_stream`, `sqlite` nor `crowdsec`", help);
        }
        let file = raw.file.get().and_then(|text| self.output_of_lines(text));
        let sqlite = raw.sqlite.get().and_then(|text| self.output(text));
        if let (Some(text), true) = (raw.sqlite.get(), sqlite.is_some() && file == sqlite) {
            let message = "`file` and `sqlite` are the same file";
            self.mistakes.report(text.at, message, "give one of the two another path");
        }
        AuditSettings {
            file,
            redis_stream: self.redis_stream(&raw.redis_stream),
            sqlite,
            crowdsec: raw.crowdsec.get().and_then(|raw| self.machine(raw)),
        }
    }

    fn redis_stream(&mut self, field: &Field<raw::record::RedisStream>) -> Option<RedisStream> {
        let raw = field.get()?;
        if !self.has_redis {
            let help = "add `store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}`, or write to a `file`";
            self.mistakes.report(
                field.key().unwrap_or(raw.at),
                "`redis_stream` needs a Redis, and there is no `store.redis`",
                help,
            );
        }
        let max_entries = self.count(&raw.max_entries).map(|count| u64::from(count.get()));
        let name = raw.key.get()?;
        if self.refuse_glob(name, "the key of a stream", "write one such as `portcullis:audit`") {
            return None;
        }
        let Text { value, at } = name;
        if value.is_empty() || value.chars().any(|c| c.is_whitespace() || c.is_control()) {
            let help = "write one without spaces, such as `portcullis:audit`";
            self.mistakes.report(*at, format!("`{value}` is not a key for a stream"), help);
        }
        Some(RedisStream {
            key: Arc::from(value.as_str()),
            max_entries: max_entries.unwrap_or(RedisStream::MAX_ENTRIES),
        })
    }
}

impl Compiler {
    /// The source of the list of that name.
    pub(super) fn list_source(&mut self, list: &Arc<str>, raw: &raw::document::FollowedLapi) -> Option<ListSource> {
        let lapi = self.lapi(&raw.url, &raw.ca);
        let key = raw.key_file.get().and_then(|file| self.secret(file, "key", "`cscli bouncers add` prints one"));
        let every = self.span(&raw.every, ListSource::EVERY);
        if let Some(every_at) = raw.every.get()
            && !every.is_zero()
            && !(SHORTEST_EVERY..=LONGEST_EVERY).contains(&every)
        {
            let message = "a Local API is asked at least once an hour and at most once a second";
            self.mistakes.report(every_at.at, message, "write one such as `10s`");
        }
        Some(ListSource { list: Arc::clone(list), bouncer: Bouncer { lapi: lapi?, key: key? }, every })
    }

    /// A machine that reports.
    pub(super) fn machine(&mut self, raw: &raw::record::AlertedLapi) -> Option<Machine> {
        let lapi = self.lapi(&raw.url, &raw.ca);
        let password = raw.password_file.get();
        let password = password.and_then(|file| self.secret(file, "password", "`cscli machines add` sets it"));
        let login = raw.login.get()?;
        if login.value.trim().is_empty() {
            self.mistakes.report(
                login.at,
                "the name of a machine is empty",
                "write the one that `cscli machines list` shows",
            );
        }
        Some(Machine { lapi: lapi?, login: login.value.clone(), password: password? })
    }

    /// A Local API, and how it is verified.
    pub(super) fn lapi(&mut self, url: &Field<Text>, ca: &Field<Text>) -> Option<Lapi> {
        let ca = ca.get().map(|file| self.authorities_of_server(file));
        let text = url.get()?;
        let url = LapiUrl::parse(&text.value).map_err(InvalidValue::from);
        let url =
            url.map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help)).ok()?;
        match ca {
            Some(None) => None,
            ca => Some(Lapi::new(url, ca.flatten())),
        }
    }

    /// The authorities that a server is verified by.
    pub(super) fn authorities_of_server(&mut self, file: &Text) -> Option<CaCertificates> {
        let NamedFile { path, content } = self.file(file, "certificate")?;
        let read = CaCertificates::from_pem(&content);
        let report = |error| {
            let message = format!("cannot use the certificate file `{}`: {error}", path.display());
            self.mistakes.report(file.at, message, "name a PEM file with the certificates of authorities");
        };
        read.map_err(report).ok()
    }

    /// Reads a file with a key or a password. No message shows its content.
    pub(super) fn secret(&mut self, file: &Text, kind: &str, origin: &str) -> Option<Secret> {
        let NamedFile { path, content } = self.file(file, kind)?;
        let lines = content.lines().filter(|line| !line.trim().is_empty()).count();
        let message = match (lines, Secret::new(&content)) {
            (1, Some(secret)) => {
                self.warn_of_readers(file, &path, kind);
                return Some(secret);
            }
            (0, _) => format!("the {kind} file `{}` is empty", file.value),
            (1, None) => {
                format!("the {kind} file `{}` holds no {kind}: it has other characters than ASCII", file.value)
            }
            _ => format!("the {kind} file `{}` has several lines", file.value),
        };
        self.mistakes.report(file.at, message, format!("write the {kind} into it, as one line: {origin}"));
        None
    }
}

impl Compiler {
    pub(super) fn channels(&mut self, document: &Document) -> Channels {
        let mut channels = Channels::default();
        let named = document.notify.get().map(|named| &named.entries[..]).unwrap_or_default();
        for (name, raw) in named {
            let checked = self.name(name);
            let every = self.span(&raw.every, ChannelSettings::EVERY);
            let webhook = raw.webhook.get().and_then(|text| self.webhook(text));
            let Ok(id) = u16::try_from(channels.by_name.len()).map(ChannelId) else {
                let message = format!("there are more than {} channels", u16::MAX);
                self.mistakes.report(name.at, message, "a configuration holds no more");
                break;
            };
            // References to a channel with a mistake are not reported as well.
            channels.by_name.insert(name.value.clone(), id);
            if let (Some(name), Some(webhook)) = (checked, webhook) {
                channels.compiled.push(ChannelSettings { name, webhook, every });
            }
        }
        channels
    }

    /// Messages do not show the webhook: its path is a secret.
    fn webhook(&mut self, text: &Text) -> Option<Webhook> {
        let webhook = Webhook::parse(&text.value).map_err(InvalidValue::from);
        let webhook = webhook
            .map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help))
            .ok()?;
        self.warn_of_example_webhook(text, webhook.host());
        Some(webhook)
    }

    /// The channels of a limit or of sign-ins.
    pub(super) fn notified(&mut self, names: &Field<OneOrList<Text>>, channels: &Channels) -> Vec<ChannelId> {
        let Some(names) = names.get() else { return Vec::new() };
        if names.is_empty() {
            let help = "name a channel of the `notify` section, or remove it";
            self.mistakes.report(names.at, "an empty `notify` notifies no channel", help);
        }
        let mut notified = Vec::with_capacity(names.items.len());
        for name in &names.items {
            match channels.by_name.get(&name.value) {
                Some(id) if notified.contains(id) => {
                    self.mistakes.report(
                        name.at,
                        format!("the channel `{}` is named twice", name.value),
                        "remove one of the two",
                    );
                }
                Some(id) => notified.push(*id),
                None => {
                    let mut known: Vec<&str> = channels.by_name.keys().map(String::as_str).collect();
                    known.sort_unstable();
                    self.unknown_name(name, "channel", "notify", &known);
                }
            }
        }
        notified
    }
}

impl Compiler {
    pub(super) fn tracing(&mut self, document: &Document) -> Option<TracingSettings> {
        let raw = document.tracing.get()?;
        let text = raw.otlp.get()?;
        let collector = CollectorUrl::parse(&text.value).map_err(InvalidValue::from);
        let collector = collector
            .map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help))
            .ok()?;
        let sample = raw.sample.get().map_or(SampleRatio::ALL, |sample| sample.value);
        Some(TracingSettings { collector, sample })
    }
}

// The keys `crowdsec`: of a list, and of the audit trail.

const SHORTEST_EVERY: Duration = Duration::from_millis(grammar::ASKED_EVERY.least);

const LONGEST_EVERY: Duration = grammar::ASKED_EVERY.longest().0;

// The `notify` section.

/// The channels of a configuration by name.
#[derive(Debug, Default)]
pub(super) struct Channels {
    by_name: HashMap<String, ChannelId>,
    /// By `ChannelId`. Channels with mistakes are left out.
    compiled: Vec<ChannelSettings>,
}

impl Channels {
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.compiled.iter().map(|channel| Arc::clone(&channel.name)).collect()
    }

    pub(super) fn compiled(self) -> NotifySettings {
        NotifySettings { channels: self.compiled }
    }
}
