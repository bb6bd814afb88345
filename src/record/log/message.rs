//! One message of the operational log, in each of the JSON formats.

use std::fmt;

use serde_json::Value;
use tracing::Event;
use tracing::Level;
use tracing::field::Field;
use tracing::field::Visit;

use crate::clock::Timestamp;
use crate::record::line::nanos;
use crate::record::line::put;
use crate::record::line::quoted;
use crate::record::line::raw;
use crate::record::line::time;
use crate::record::log_settings::ECS_VERSION;

/// The sentence of a log event, and its fields in order.
#[derive(Debug, Default)]
pub(super) struct LogMessage {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl LogMessage {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut message = Self::default();
        event.record(&mut message);
        message
    }

    /// `{"time": .., "level": "INFO", "message": .., ..}`
    pub(super) fn as_json(&self, at: Timestamp, level: Level) -> Vec<u8> {
        let mut line = b"{\"time\":\"".to_vec();
        time(&mut line, at);
        raw(&mut line, "\",\"level\":");
        quoted(&mut line, level.as_str());
        raw(&mut line, ",\"message\":");
        quoted(&mut line, &self.message);
        for (name, value) in &self.fields {
            line.push(b',');
            quoted(&mut line, name);
            line.push(b':');
            put(&mut line, value);
        }
        raw(&mut line, "}\n");
        line
    }

    /// In the Elastic Common Schema. Fields that it does not know are put under `portcullis`.
    pub(super) fn as_ecs(&self, at: Timestamp, level: Level) -> Vec<u8> {
        let mut line = b"{\"@timestamp\":\"".to_vec();
        time(&mut line, at);
        raw(&mut line, "\",\"log.level\":");
        quoted(&mut line, &level.as_str().to_ascii_lowercase());
        raw(&mut line, ",\"message\":");
        quoted(&mut line, &self.message);
        raw(&mut line, ",\"ecs.version\":\"");
        raw(&mut line, ECS_VERSION);
        raw(&mut line, "\",\"service.name\":\"portcullis\",\"event.dataset\":\"portcullis.log\"");
        for (name, value) in &self.fields {
            raw(&mut line, ",\"");
            schema_name(&mut line, name, "client.ip", "error.stack_trace");
            raw(&mut line, "\":");
            put(&mut line, value);
        }
        raw(&mut line, "}\n");
        line
    }

    /// As a `LogRecord` of OpenTelemetry.
    pub(super) fn as_otel(&self, at: Timestamp, level: Level) -> Vec<u8> {
        let mut line = b"{\"timeUnixNano\":".to_vec();
        nanos(&mut line, at);
        raw(&mut line, ",\"severityNumber\":");
        put(&mut line, severity(level));
        raw(&mut line, ",\"severityText\":");
        quoted(&mut line, level.as_str());
        raw(&mut line, ",\"body\":{\"stringValue\":");
        quoted(&mut line, &self.message);
        raw(&mut line, "},\"attributes\":[");
        for (position, (name, value)) in self.fields.iter().enumerate() {
            raw(&mut line, if position > 0 { ",{\"key\":\"" } else { "{\"key\":\"" });
            schema_name(&mut line, name, "client.address", "exception.stacktrace");
            raw(&mut line, "\",\"value\":{");
            match value {
                Value::Bool(_) => put(&mut line, format_args!("\"boolValue\":{value}")),
                Value::Number(number) if number.is_f64() => put(&mut line, format_args!("\"doubleValue\":{value}")),
                Value::Number(_) => put(&mut line, format_args!("\"intValue\":\"{value}\"")),
                _ => put(&mut line, format_args!("\"stringValue\":{value}")),
            }
            raw(&mut line, "}}");
        }
        raw(&mut line, "]}\n");
        line
    }

    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(message)) => self.message = message,
            (name, value) => self.fields.push((name, value)),
        }
    }
}

/// The name of a field in another schema. `client` and `backtrace` are the schema's names for these fields.
fn schema_name(line: &mut Vec<u8>, name: &str, client: &str, backtrace: &str) {
    match name {
        "client" => raw(line, client),
        "error" => raw(line, "error.message"),
        "backtrace" => raw(line, backtrace),
        name => put(line, format_args!("portcullis.{name}")),
    }
}

fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 17,
        Level::WARN => 13,
        Level::INFO => 9,
        Level::DEBUG => 5,
        Level::TRACE => 1,
    }
}

impl Visit for LogMessage {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}
