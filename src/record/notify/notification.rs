//! The message that a webhook gets.

use std::sync::Arc;

use serde_json::Value;
use serde_json::json;

use crate::record::Event;

/// An event, and how many like it were suppressed since the last notification.
#[derive(Clone, Debug)]
pub(super) struct Notification {
    pub(super) event: Arc<Event>,
    pub(super) suppressed: u64,
}

impl Notification {
    /// The event as in the audit trail, the number of suppressed ones, and the same as a sentence for chats.
    pub(super) fn to_json(&self) -> Value {
        let mut message = json!(&*self.event);
        message["suppressed"] = json!(self.suppressed);
        message["gateway"] = json!("portcullis");
        message["version"] = json!(env!("CARGO_PKG_VERSION"));
        message["text"] = json!(self.sentence());
        message
    }

    fn sentence(&self) -> String {
        let Self { event, suppressed } = self;
        let mut sentence = format!("portcullis: {}", event.kind.as_str());
        let key = event.key.as_deref().unwrap_or_default();
        let key: Vec<_> = key.iter().map(|(selector, value)| format!("{selector}={value}")).collect();
        let details = [
            event.limit.as_deref().map(|limit| format!(" by {limit}")),
            (!key.is_empty()).then(|| format!(" of {}", key.join(" "))),
            event.client.map(|client| format!(", client {client}")),
            event.until.map(|until| format!(", until {until}")),
            (*suppressed > 0).then(|| format!(", {suppressed} more since the last message")),
        ];
        sentence.extend(details.into_iter().flatten());
        sentence
    }
}
