//! The rate limit headers of responses: `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11,
//! and the older `X-RateLimit-*`.

use std::fmt::Write;

use crate::rules::decision::{LimitReport, LimitReports, Policy, RateReport};
use crate::rules::limit::{Limit, LimitId};
use crate::wire::head::{Fields, KnownName};
use crate::words::units::whole_seconds;
use crate::words::word::words;

words! {
    /// Which rate limit headers responses carry.
    #[derive(Default)]
    pub enum HeaderStyle {
        #[default]
        Ietf = "ietf",
        Legacy = "legacy",
        Both = "both",
        Off = "off",
    }
}

/// The parts of the headers that are the same for all requests, prepared once. `limits` is by `LimitId`.
#[derive(Clone, Debug)]
pub struct RateLimitHeaders {
    style: HeaderStyle,
    limits: Vec<Option<ExposedLimit>>,
}

/// A limit whose state responses show.
#[derive(Clone, Debug)]
struct ExposedLimit {
    /// `"login-pace";q=1;w=1, "login-pace/2";q=20;w=60`
    policy: String,
    /// The name of each rate as a string of structured fields, with quotes.
    names: Vec<String>,
}

impl RateLimitHeaders {
    pub fn new(policy: &Policy, style: HeaderStyle) -> Self {
        Self { style, limits: policy.limits.iter().map(ExposedLimit::new).collect() }
    }

    /// Adds the headers for the limits of a request. Headers that the application has set stay.
    pub fn write(&self, fields: &mut Fields, reports: &LimitReports) {
        if self.style == HeaderStyle::Off {
            return;
        }
        let Some(closest) = &reports.closest else { return };
        if self.style != HeaderStyle::Legacy {
            fields.append_with(KnownName::RATELIMIT_POLICY, |text| self.write_policies(&reports.limits, text));
            fields.append_with(KnownName::RATELIMIT, |text| self.write_state(closest, text));
        }
        if self.style != HeaderStyle::Ietf {
            fields.append_with(KnownName::X_RATELIMIT_LIMIT, |text| write_number(closest.quota.into(), text));
            fields.append_with(KnownName::X_RATELIMIT_REMAINING, |text| write_number(closest.remaining, text));
            fields.append_with(KnownName::X_RATELIMIT_RESET, |text| write_number(whole_seconds(closest.reset), text));
        }
    }

    fn limit(&self, id: LimitId) -> Option<&ExposedLimit> {
        self.limits.get(usize::from(id.0))?.as_ref()
    }

    fn write_policies(&self, reports: &[LimitReport], text: &mut Vec<u8>) {
        let shown = reports.iter().filter(|report| report.is_shown);
        for (position, limit) in shown.filter_map(|report| self.limit(report.limit)).enumerate() {
            text.extend_from_slice(if position == 0 { b"" } else { b", " });
            text.extend_from_slice(limit.policy.as_bytes());
        }
    }

    /// `"login-pace/2";r=17;t=42`
    fn write_state(&self, closest: &RateReport, text: &mut Vec<u8>) {
        let names = self.limit(closest.limit).map(|limit| &limit.names);
        let name = names.and_then(|names| names.get(usize::from(closest.rate)));
        text.extend_from_slice(name.map_or(&[], |name| name.as_bytes()));
        text.extend_from_slice(b";r=");
        write_number(closest.remaining, text);
        text.extend_from_slice(b";t=");
        write_number(whole_seconds(closest.reset), text);
    }
}

impl ExposedLimit {
    /// `None` for a limit whose state is hidden, or that has no rates.
    fn new(limit: &Limit) -> Option<Self> {
        let rates = limit.shown_rates()?;
        let mut policy = String::new();
        let mut names = Vec::new();
        for (position, rate) in rates.iter().enumerate() {
            let name = match position {
                0 => quoted(&limit.name),
                _ => quoted(&format!("{}/{}", limit.name, position + 1)),
            };
            let separator = if position == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(policy, "{separator}{name};q={};w={}", rate.count, whole_seconds(rate.per));
            names.push(name);
        }
        Some(Self { policy, names })
    }
}

fn write_number(number: u64, text: &mut Vec<u8>) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A string of structured fields, which has only visible ASCII characters.
fn quoted(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len() + 2);
    quoted.push('"');
    for character in name.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
