//! The extended log of the W3C, as IIS writes it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use http::Method;

use super::LogLine;
use crate::replay::formats::scanner;
use crate::replay::{LoggedHeader, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::wire::head::KnownName;

/// The columns that the last `#Fields:` of a file named, and the day of its last `#Date:`.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    names: Vec<Box<str>>,
    date: Option<Box<str>>,
}

/// `2026-11-21 07:58:52 10.0.0.1 GET /a b=c 443 - 198.51.100.7 curl/8 - 200 0 0 12`, in the columns that the file
/// names. Times are in UTC, at the end of the request; `time-taken` is in milliseconds.
pub(super) fn read(line: &[u8], columns: &mut Columns) -> Option<LogLine> {
    let line = str::from_utf8(line).ok()?;
    if line.starts_with('#') {
        return columns.note(line).then_some(LogLine::Directive);
    }
    let row = columns.row(line)?;
    let date = row.get("date").or(columns.date.as_deref())?;
    let end = scanner::of_rfc3339(&format!("{date}T{}Z", row.get("time")?))?;
    let client: IpAddr = forwarded::address(row.get("c-ip")?.as_bytes())?;
    let (Some(method), Some(path)) = (row.get("cs-method"), row.get("cs-uri-stem")) else {
        return Some(LogLine::NoRequest);
    };
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return Some(LogLine::NoRequest) };
    let target = match row.get("cs-uri-query") {
        Some(query) => Cow::Owned(format!("{path}?{query}")),
        None => Cow::Borrowed(path),
    };
    let millis = row.get("time-taken").and_then(|millis| millis.parse().ok());
    let duration = millis.map(Duration::from_millis);
    let mut logged = LoggedRequest::new(scanner::before(end, duration), client, method, &target);
    logged.duration = duration;
    logged.has_query = columns.holds("cs-uri-query");
    if let Some(host) = row.get("cs-host").or(row.get("cs(Host)")) {
        logged.host = Some(host.into());
    }
    for (column, name) in HEADERS {
        if columns.holds(column) {
            // IIS writes `+` for a space.
            let sent = row.get(column).map(|sent| sent.replace('+', " ").into_bytes().into());
            logged.headers.push(LoggedHeader::new(name, sent.map_or(LoggedValue::NotSent, LoggedValue::Sent)));
        }
    }
    let status = row.get("sc-status").and_then(|status| status.parse().ok());
    Some(LogLine::Request(logged.answered_with(status.unwrap_or(0))))
}

/// A line in its columns.
struct Row<'l>(Vec<(&'l str, &'l str)>);

impl<'l> Row<'l> {
    /// `-` stands for a value that there is none of.
    fn get(&self, column: &str) -> Option<&'l str> {
        let (_, value) = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(column))?;
        Some(*value).filter(|value| *value != "-")
    }
}

impl Columns {
    /// Takes over what a directive says. `false`: it is none.
    fn note(&mut self, line: &str) -> bool {
        let Some((name, value)) = line[1..].split_once(':') else { return false };
        match name {
            "Fields" => self.names = value.split_ascii_whitespace().map(Into::into).collect(),
            "Date" => self.date = value.split_ascii_whitespace().next().map(Into::into),
            "Software" | "Version" | "Start-Date" | "End-Date" | "Remark" => {}
            _ => return false,
        }
        true
    }

    /// `None`: the line has another number of columns than the file names, as one that was cut.
    fn row<'l>(&'l self, line: &'l str) -> Option<Row<'l>> {
        let values: Vec<_> = line.split_ascii_whitespace().collect();
        let fits = !self.names.is_empty() && values.len() == self.names.len();
        fits.then(|| Row(self.names.iter().map(|name| &**name).zip(values).collect()))
    }

    fn holds(&self, column: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(column))
    }
}

const HEADERS: [(&str, KnownName); 3] =
    [("cs(User-Agent)", KnownName::USER_AGENT), ("cs(Referer)", KnownName::REFERER), ("cs(Cookie)", KnownName::COOKIE)];
