//! The lines that a sample should have.

use std::time::Duration;

use http::Version;
use serde_json::{Value, json};

use super::oracle::Sample;
use crate::record::DecisionLabel;
use crate::record::access_log::write::split_port;

impl Sample {
    pub(super) fn expected_json(&self) -> String {
        let time = format!("\"time\":\"{}\"", self.at);
        let left_out = ["query", "list", "unread", "outcome", "upstream_request_id", "error"];
        let fields = self.fields(0).into_iter().filter_map(|(name, value)| match value {
            None if left_out.contains(&name) => None,
            _ if name == "duration_ms" => Some(format!("\"duration_ms\":{}", self.millis())),
            value => Some(format!("\"{name}\":{}", value.unwrap_or_default())),
        });
        format!("{{{}}}\n", [time].into_iter().chain(fields).collect::<Vec<_>>().join(","))
    }

    pub(super) fn expected_ecs(&self) -> String {
        let kind = match self.decision {
            DecisionLabel::Allowed | DecisionLabel::Delayed => "allowed",
            DecisionLabel::Error => "error",
            _ => "denied",
        };
        let outcome =
            self.status.map_or("unknown", |status| if (400..600).contains(&status) { "failure" } else { "success" });
        let always = format!(
            "\"@timestamp\":\"{}\",\"log.level\":\"info\",\"message\":{},\"ecs.version\":\"8.17.0\",\
             \"service.name\":\"portcullis\",\"event.dataset\":\"portcullis.requests\",\"event.kind\":\"event\",\
             \"event.category\":[\"web\"],\"event.type\":[\"access\",\"{kind}\"],\"event.outcome\":\"{outcome}\"",
            self.at,
            json!(self.message()),
        );
        let known = self.fields(1).into_iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", value?)));
        format!("{{{}}}\n", [always].into_iter().chain(known).collect::<Vec<_>>().join(","))
    }

    pub(super) fn expected_otel(&self) -> String {
        let attribute = |name: &str, value: Value| match value {
            _ if name == "portcullis.duration_ms" => {
                format!("{{\"key\":\"{name}\",\"value\":{{\"doubleValue\":{}}}}}", self.millis())
            }
            value => format!("{{\"key\":\"{name}\",\"value\":{}}}", otlp(&value)),
        };
        let known = self.fields(2).into_iter().filter_map(|(name, value)| Some(attribute(name, value?)));
        let protocol = attribute("network.protocol.name", json!("http"));
        format!(
            "{{\"timeUnixNano\":\"{}000\",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{},\"attributes\":[{}]}}\n",
            self.at.as_micros(),
            otlp(&json!(self.message())),
            [protocol].into_iter().chain(known).collect::<Vec<_>>().join(",")
        )
    }

    pub(super) fn expected_human(&self) -> String {
        let labelled = |label: &str, value: &str| {
            let quote = if value.contains(' ') { "\"" } else { "" };
            format!(" {}={quote}{}{quote}", plain(label), plain(value))
        };
        let optional =
            |label: &str, value: &Option<String>| value.as_ref().map_or(String::new(), |value| labelled(label, value));
        let [query, route, limit, list, ban, upstream, server, upstream_id, error] = &self.optional_texts;
        let query = query.as_ref().map_or(String::new(), |query| format!("?{}", plain(query)));
        let key = self.key.iter().flat_map(|(_, parts)| parts);
        [
            format!("{} {} {} ", self.at, self.addresses[0], self.method),
            plain(&self.texts[1]) + &plain(&self.texts[2]) + &query,
            format!(" {} {}", self.status_text(), self.decision.as_str()),
            optional("limit", limit),
            optional("list", list),
            key.map(|(selector, value)| labelled(selector, value)).collect(),
            if self.is_unread { " unread=true".to_owned() } else { String::new() },
            optional("ban", ban),
            self.retry_after.map_or(String::new(), |seconds| format!(" retry_after={seconds}")),
            optional("outcome", &self.outcome.map(|outcome| outcome.as_str().to_owned())),
            optional("route", route) + &optional("upstream", upstream),
            optional("server", server) + &optional("upstream_id", upstream_id),
            self.shadow_names().iter().map(|name| labelled("shadow", name)).collect(),
            format!(" {}ms", self.millis()),
            labelled("id", &self.texts[0]) + &optional("error", error) + "\n",
        ]
        .concat()
    }

    /// The fields that all formats of JSON have, under their names in the format of this number. Unknown ones are `None`.
    fn fields(&self, format: usize) -> Vec<(&'static str, Option<Value>)> {
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        let [query, route, limit, list, ban, upstream, server, upstream_id, error] =
            self.optional_texts.each_ref().map(text);
        let version = self.version.map(|version| match (version, format) {
            (Version::HTTP_10, 0) => "http/1.0",
            (Version::HTTP_11, 0) => "http/1.1",
            (Version::HTTP_2, 0) => "h2",
            (_, 0) => "h3",
            (Version::HTTP_10, _) => "1.0",
            (Version::HTTP_11, _) => "1.1",
            (Version::HTTP_2, _) => "2",
            _ => "3",
        });
        let (host, port) = if format == 0 { (&*self.texts[1], None) } else { split_port(&self.texts[1]) };
        let micros = self.numbers[0];
        let duration = u64::try_from(Duration::from_micros(micros).as_nanos()).unwrap_or(u64::MAX);
        let names = |pair: &(String, String)| format!("{}={}", pair.0, pair.1);
        let masked = self.key.as_ref().map(|(_, parts)| json!(parts.iter().map(names).collect::<Vec<_>>().join(" ")));
        let shadow = Some(self.shadow_names()).filter(|names| format == 0 || !names.is_empty());
        let all = [
            (["request_id", "http.request.id", "portcullis.request_id"], Some(json!(self.texts[0]))),
            (["trace_id", "trace.id", "trace_id"], None),
            (["client", "client.ip", "client.address"], Some(json!(self.addresses[0].to_string()))),
            (["peer", "source.ip", "network.peer.address"], Some(json!(self.addresses[1].to_string()))),
            (["scheme", "url.scheme", "url.scheme"], Some(json!("https"))),
            (["protocol", "http.version", "network.protocol.version"], version.map(|version| json!(version))),
            (["method", "http.request.method", "http.request.method"], Some(json!(self.method.as_str()))),
            (["host", "url.domain", "server.address"], Some(json!(host))),
            (["query", "url.port", "server.port"], port.map(|port| json!(port))),
            (["path", "url.path", "url.path"], Some(json!(self.texts[2]))),
            (["query", "url.query", "url.query"], query),
            (
                ["user_agent", "user_agent.original", "user_agent.original"],
                self.user_agent.as_ref().map(|bytes| json!(String::from_utf8_lossy(bytes))),
            ),
            (["route", "portcullis.route", "portcullis.route"], route),
            (["decision", "event.action", "portcullis.decision"], Some(json!(self.decision.as_str()))),
            (["limit", "rule.name", "portcullis.limit"], limit),
            (["list", "portcullis.list", "portcullis.list"], list),
            (
                ["key", "portcullis.key", "portcullis.key"],
                self.key.as_ref().map(|(hash, _)| json!(format!("{hash:032x}"))),
            ),
            (["key_masked", "portcullis.key_masked", "portcullis.key_masked"], masked),
            (["unread", "portcullis.unread", "portcullis.unread"], self.is_unread.then_some(json!(true))),
            (["ban", "portcullis.ban", "portcullis.ban"], ban),
            (
                ["retry_after", "portcullis.retry_after", "portcullis.retry_after"],
                self.retry_after.map(|number| json!(number)),
            ),
            (["shadow", "portcullis.shadow", "portcullis.shadow"], shadow.map(|names| json!(names))),
            (
                ["status", "http.response.status_code", "http.response.status_code"],
                self.status.map(|status| json!(status)),
            ),
            (
                ["outcome", "portcullis.outcome", "portcullis.outcome"],
                self.outcome.map(|outcome| json!(outcome.as_str())),
            ),
            (["upstream", "portcullis.upstream", "portcullis.upstream"], upstream),
            (["server", "portcullis.server", "portcullis.server"], server),
            (["upstream_request_id", "portcullis.upstream_request_id", "portcullis.upstream_request_id"], upstream_id),
            (["duration_ms", "event.duration", "portcullis.duration_ms"], Some(json!(duration))),
            (["bytes_in", "http.request.body.bytes", "http.request.body.size"], Some(json!(self.numbers[1]))),
            (["bytes_out", "http.response.body.bytes", "http.response.body.size"], Some(json!(self.numbers[2]))),
            (["error", "error.message", "error.message"], error),
        ];
        all.into_iter().map(|(names, value)| (names[format], value)).collect()
    }

    fn millis(&self) -> String {
        format!("{}.{:03}", self.numbers[0] / 1000, self.numbers[0] % 1000)
    }

    fn message(&self) -> String {
        let [_, host, path] = &self.texts;
        format!("{} {host}{path} {} {}", self.method, self.status_text(), self.decision.as_str())
    }

    fn status_text(&self) -> String {
        self.status.map_or("-".to_owned(), |status| status.to_string())
    }

    fn shadow_names(&self) -> Vec<&'static str> {
        ["login-pace", "a \"new\" one"]
            .into_iter()
            .zip(self.shadow_limits)
            .filter(|(_, shadow)| *shadow)
            .map(|(name, _)| name)
            .collect()
    }
}

/// A value as OTLP's JSON has it.
fn otlp(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!({"boolValue": flag}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(values) => json!({"arrayValue": {"values": values.iter().map(otlp).collect::<Vec<_>>()}}),
        text => json!({"stringValue": text}),
    }
}

/// Text that is safe on a terminal.
fn plain(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        text.to_owned()
    } else {
        text.escape_debug().to_string()
    }
}
