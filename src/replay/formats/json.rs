//! JSON with one object a line and fields of any name, as nginx writes it with a `log_format` of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use memchr::memmem;
use serde_json::{Map, Value};

use super::LogLine;
use crate::replay::formats::{combined, scanner};
use crate::replay::{LoggedHeader, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::wire::head::KnownName;
use crate::words::clock::Timestamp;
use crate::words::units::{listed, nearest};

/// Which field of a line holds what. What is not named stands under the usual names of nginx's variables.
#[derive(Clone, Debug, Default)]
pub struct FieldNames(BTreeMap<&'static str, Box<str>>);

/// Why `--fields` cannot be read.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidFields {
    #[error("`{0}` is no pair: write `time=FIELD,client=FIELD`, and so on")]
    NoPair(String),
    #[error("unknown part `{written}` of a request, {help}")]
    UnknownPart { written: String, help: String },
    #[error("`{0}` is named twice")]
    Twice(&'static str),
}

impl FieldNames {
    /// Reads `time=time_iso8601,client=remote_addr`.
    pub fn parse(text: &str) -> Result<Self, InvalidFields> {
        let mut names = BTreeMap::new();
        for pair in text.split(',') {
            let (part, name) = pair
                .split_once('=')
                .map(|(part, name)| (part.trim(), name.trim()))
                .filter(|(_, name)| !name.is_empty())
                .ok_or_else(|| InvalidFields::NoPair(pair.to_owned()))?;
            let Some((part, _)) = USUAL.iter().find(|(known, _)| *known == part) else {
                let known = USUAL.map(|(known, _)| known);
                let help = match nearest(part, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the parts are {}", listed(&known)),
                };
                return Err(InvalidFields::UnknownPart { written: part.to_owned(), help });
            };
            if names.insert(*part, name.into()).is_some() {
                return Err(InvalidFields::Twice(part));
            }
        }
        Ok(Self(names))
    }

    /// Whether the operator has named any.
    pub fn is_any_named(&self) -> bool {
        !self.0.is_empty()
    }

    fn is_named(&self, part: &str) -> bool {
        self.0.contains_key(part)
    }

    fn find<'v>(&self, part: &str, line: &'v Map<String, Value>) -> Option<&'v Value> {
        if let Some(name) = self.0.get(part) {
            return lookup(line, name);
        }
        let (_, usual) = USUAL.iter().find(|(known, _)| *known == part)?;
        usual.iter().find_map(|name| line.get(*name))
    }

    /// The text of a part. nginx writes `-` or nothing for a variable that has no value.
    fn text<'v>(&self, part: &str, line: &'v Map<String, Value>) -> Option<Cow<'v, str>> {
        let text = match self.find(part, line)? {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            Value::Number(number) => Cow::Owned(number.to_string()),
            _ => return None,
        };
        Some(text).filter(|text| !text.is_empty() && *text != "-")
    }
}

/// A field by its name, or by the path to it: `client.ip`.
fn lookup<'v>(line: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    line.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        lookup(line.get(outer)?.as_object()?, inner)
    })
}

/// A line is written when its request has ended.
pub(super) fn read(line: &[u8], names: &FieldNames) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let line = &object(line)?;
    let end = moment(&names.text("time", line)?)?;
    let client = forwarded::address(names.text("client", line)?.as_bytes())?;
    let is_request_asked = !names.is_named("method") && !names.is_named("path");
    let request_line = names.find("request", line).and_then(Value::as_str).filter(|_| is_request_asked);
    let method = names.find("method", line);
    if request_line.is_none() && (method.is_none() || names.find("path", line).is_none()) {
        return None;
    }
    let (method, target, has_query) = if let Some(request) = request_line {
        let Some((method, target)) = combined::read_request_line(request.as_bytes()) else {
            return Some(LogLine::NoRequest);
        };
        (method, Cow::Borrowed(target), true)
    } else {
        let (Some(method), Some(path)) = (names.text("method", line), names.text("path", line)) else {
            return Some(LogLine::NoRequest);
        };
        let Ok(method) = Method::from_bytes(method.as_bytes()) else { return Some(LogLine::NoRequest) };
        let has_query = path.contains('?') || names.find("query", line).is_some();
        let target = match names.text("query", line) {
            Some(query) if !path.contains('?') => Cow::Owned(format!("{path}?{query}")),
            _ => path,
        };
        (method, target, has_query)
    };
    let seconds = names.text("duration", line).and_then(|seconds| seconds.parse().ok());
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let mut logged = LoggedRequest::new(scanner::before(end, duration), client, method, &target);
    logged.duration = duration;
    logged.has_query = has_query;
    if let Some(host) = names.text("host", line) {
        logged.host = Some(host.as_ref().into());
    }
    for (part, name) in [("referer", KnownName::REFERER), ("user_agent", KnownName::USER_AGENT)] {
        if names.find(part, line).is_some() {
            let sent = names.text(part, line);
            let value = sent.map_or(LoggedValue::NotSent, |sent| LoggedValue::Sent(sent.as_bytes().into()));
            logged.headers.push(LoggedHeader::new(name, value));
        }
    }
    let status = names.text("status", line).and_then(|status| status.parse().ok());
    Some(LogLine::Request(logged.answered_with(status.unwrap_or(0))))
}

/// The fields of a line. Without `escape=json`, nginx writes `\x22` for a quotation mark, which is no JSON.
fn object(line: &[u8]) -> Option<Map<String, Value>> {
    if let Ok(read) = serde_json::from_slice(line) {
        return Some(read);
    }
    memmem::find(line, br"\x")?;
    serde_json::from_str(&str::from_utf8(line).ok()?.replace(r"\x", r"\u00")).ok()
}

/// `$time_iso8601`, `$time_local` or `$msec`, or the like.
fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok().and_then(scanner::of_number).or_else(|| scanner::of_text(text))
}

/// The names that `--fields` may use, and the usual keys of each.
const USUAL: [(&str, &[&str]); 11] = [
    ("time", &["time_iso8601", "time_local", "msec", "@timestamp", "timestamp", "time"]),
    ("client", &["remote_addr", "client_ip", "remote_ip", "client"]),
    ("request", &["request"]),
    ("method", &["request_method", "method"]),
    ("path", &["request_uri", "uri", "path"]),
    ("query", &["args", "query_string", "query"]),
    ("status", &["status"]),
    ("host", &["http_host", "host", "server_name"]),
    ("duration", &["request_time"]),
    ("user_agent", &["http_user_agent", "user_agent"]),
    ("referer", &["http_referer", "http_referrer", "referer"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_part_comes_with_the_nearest_one() {
        let error = |text| FieldNames::parse(text).unwrap_err().to_string();
        assert_eq!(error("tiem=t"), "unknown part `tiem` of a request, did you mean `time`?");
        assert!(error("colour=t").starts_with("unknown part `colour` of a request, the parts are `time`, `client`,"));
        assert!(error("time").starts_with("`time` is no pair"));
        assert!(error("time=").starts_with("`time=` is no pair"));
        assert_eq!(error("time=a,time=b"), "`time` is named twice");
    }
}
