//! The `audit` section.

use std::sync::Arc;

use super::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Text;
use crate::record::audit::AuditSettings;
use crate::record::audit::RedisStream;

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
            redis_stream: raw.redis_stream.get().and_then(|raw| self.redis_stream(raw)),
            sqlite,
            crowdsec: raw.crowdsec.get().and_then(|raw| self.machine(raw)),
        }
    }

    fn redis_stream(&mut self, raw: &raw::record::RedisStream) -> Option<RedisStream> {
        if !self.has_redis {
            let help = "add `store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}`, or write to a `file`";
            self.mistakes.report(raw.at, "`redis_stream` needs a Redis, and there is no `store.redis`", help);
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
