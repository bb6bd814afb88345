//! The `notify` section.

use std::collections::HashMap;
use std::sync::Arc;

use super::compiler::Compiler;
use crate::config::raw::Document;
use crate::config::raw::InvalidValue;
use crate::config::raw::Text;
use crate::limit::ChannelId;
use crate::record::notify::ChannelSettings;
use crate::record::notify::NotifySettings;
use crate::record::notify::Webhook;

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

    /// The channels of a limit.
    pub(super) fn notified(&mut self, names: &[Text], channels: &Channels) -> Vec<ChannelId> {
        let mut notified = Vec::with_capacity(names.len());
        for name in names {
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
