//! The `notify` and `audit` sections.

use std::collections::HashMap;
use std::sync::Arc;

use super::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Text;
use crate::config::raw::leaf::Problem;
use crate::limit::ChannelId;
use crate::record::audit::AuditSettings;
use crate::record::audit::RedisStream;
use crate::record::notify::ChannelSettings;
use crate::record::notify::NotifySettings;
use crate::record::notify::Webhook;

/// The channels of a configuration by name.
#[derive(Debug, Default)]
pub(super) struct Channels {
    by_name: HashMap<String, ChannelId>,
    /// By `ChannelId`; those with mistakes are left out, which have been reported.
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
            // A reference to a channel with a mistake is no further mistake.
            channels.by_name.insert(name.value.clone(), id);
            if let (Some(name), Some(webhook)) = (checked, webhook) {
                channels.compiled.push(ChannelSettings { name, webhook, every });
            }
        }
        channels
    }

    /// What is wrong with a webhook is told without it: its path is a secret.
    fn webhook(&mut self, text: &Text) -> Option<Webhook> {
        let webhook = Webhook::parse(&text.value).map_err(Problem::from);
        let webhook =
            webhook.map_err(|Problem { message, help }| self.mistakes.report_secret(text.at, message, help)).ok()?;
        self.warn_of_example_webhook(text, webhook.host());
        Some(webhook)
    }

    /// Who is told, by name.
    pub(super) fn notified(&mut self, names: &[Text], channels: &Channels) -> Vec<ChannelId> {
        let mut notified = Vec::with_capacity(names.len());
        for name in names {
            match channels.by_name.get(&name.value) {
                Some(id) if notified.contains(id) => {
                    self.mistakes.report(name.at, format!("`{}` is told twice", name.value), "remove one of the two");
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

    pub(super) fn audit(&mut self, document: &Document) -> AuditSettings {
        let Some(raw) = document.audit.get() else { return AuditSettings::default() };
        if raw.file.is_absent() && raw.redis_stream.is_absent() && raw.sqlite.is_absent() {
            let help = "name one: `file: audit.jsonl`, or remove `audit`";
            self.mistakes.report(raw.at, "an `audit` without a place to keep it", help);
        }
        let file = raw.file.get().and_then(|text| self.output_of_lines(text));
        let sqlite = raw.sqlite.get().and_then(|text| self.output(text));
        if let (Some(text), true) = (raw.sqlite.get(), sqlite.is_some() && file == sqlite) {
            let message = "`file` and `sqlite` are one file, and cannot share it";
            self.mistakes.report(text.at, message, "give one of the two another path");
        }
        AuditSettings { file, redis_stream: raw.redis_stream.get().and_then(|raw| self.redis_stream(raw)), sqlite }
    }

    fn redis_stream(&mut self, raw: &raw::record::RedisStream) -> Option<RedisStream> {
        if !self.has_redis {
            let help = "add `store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}`, or write to a `file`";
            self.mistakes.report(raw.at, "a stream in Redis, and there is no `store.redis`", help);
        }
        let max_entries = self.count(&raw.max_entries).map(|count| u64::from(count.get()));
        let name = raw.key.get()?;
        if self.refuse_glob(name, "the key of a stream", "write one such as `portcullis:audit`") {
            return None;
        }
        let Text { value, at } = name;
        if value.is_empty() || value.chars().any(|c| c.is_whitespace() || c.is_control()) {
            let help = "write one without spaces, such as `portcullis:audit`";
            self.mistakes.report(*at, format!("`{value}` is no key for a stream"), help);
        }
        Some(RedisStream {
            key: Arc::from(value.as_str()),
            max_entries: max_entries.unwrap_or(RedisStream::MAX_ENTRIES),
        })
    }
}
