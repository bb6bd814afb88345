//! The rate limit headers of responses: `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11,
//! and the older `X-RateLimit-*`.

use std::fmt::Write;

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;

use crate::decision::LimitReport;
use crate::decision::Policy;
use crate::gateway::settings::HeaderStyle;
use crate::limit::Detail;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::units::whole_seconds;

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
    policy: HeaderValue,
    /// One for each rate of the limit, in the same order.
    rates: Vec<ExposedRate>,
}

#[derive(Clone, Debug)]
struct ExposedRate {
    /// The name as a string of structured fields, with quotes.
    name: String,
    quota: u64,
}

/// The state of one rate of one limit, in units of its quota.
#[derive(Clone, Copy, Debug)]
struct RateState<'a> {
    rate: &'a ExposedRate,
    remaining: u64,
    reset: u64,
}

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

impl RateLimitHeaders {
    pub fn new(policy: &Policy, style: HeaderStyle) -> Self {
        Self { style, limits: policy.limits.iter().map(ExposedLimit::new).collect() }
    }

    /// Adds the headers for the limits of a request, beside those that the application may have set.
    pub fn write(&self, headers: &mut HeaderMap, reports: &[LimitReport]) {
        if self.style == HeaderStyle::Off {
            return;
        }
        let Some(closest) = self.closest(reports) else { return };
        if self.style != HeaderStyle::Legacy {
            if let Some(policy) = self.policies(reports) {
                headers.append(RATELIMIT_POLICY, policy);
            }
            headers.append(RATELIMIT, closest.to_header());
        }
        if self.style != HeaderStyle::Ietf {
            headers.append(X_RATELIMIT_LIMIT, HeaderValue::from(closest.rate.quota));
            headers.append(X_RATELIMIT_REMAINING, HeaderValue::from(closest.remaining));
            headers.append(X_RATELIMIT_RESET, HeaderValue::from(closest.reset));
        }
    }

    fn get(&self, report: &LimitReport) -> Option<&ExposedLimit> {
        if report.shadow || report.standings.is_empty() {
            return None;
        }
        self.limit(report.limit)
    }

    fn limit(&self, id: LimitId) -> Option<&ExposedLimit> {
        self.limits.get(usize::from(id.0))?.as_ref()
    }

    /// The rate with the smallest remaining share of its quota; of equal ones the rate that takes longer to recover.
    fn closest(&self, reports: &[LimitReport]) -> Option<RateState<'_>> {
        let mut closest: Option<RateState<'_>> = None;
        for report in reports {
            let Some(limit) = self.get(report) else { continue };
            for (rate, standing) in limit.rates.iter().zip(&report.standings) {
                let item = RateState { rate, remaining: standing.remaining, reset: whole_seconds(standing.reset) };
                if closest.is_none_or(|best| item.is_closer_than(best)) {
                    closest = Some(item);
                }
            }
        }
        closest
    }

    fn policies(&self, reports: &[LimitReport]) -> Option<HeaderValue> {
        let mut limits = reports.iter().filter_map(|report| self.get(report));
        let first = limits.next()?;
        let Some(second) = limits.next() else { return Some(first.policy.clone()) };
        let mut joined = Vec::with_capacity(160);
        joined.extend_from_slice(first.policy.as_bytes());
        for limit in std::iter::once(second).chain(limits) {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(limit.policy.as_bytes());
        }
        HeaderValue::try_from(joined).ok()
    }
}

impl ExposedLimit {
    /// `None` for a limit whose state is hidden, or that has no rates.
    fn new(limit: &Limit) -> Option<Self> {
        let Rule::Rates { rates, .. } = &limit.rule else { return None };
        if limit.headers != Detail::Full || limit.shadow {
            return None;
        }
        let mut policy = String::new();
        let mut shown = Vec::new();
        for (position, rate) in rates.iter().enumerate() {
            let name = match position {
                0 => quoted(&limit.name),
                _ => quoted(&format!("{}/{}", limit.name, position + 1)),
            };
            let separator = if position == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(policy, "{separator}{name};q={};w={}", rate.count, whole_seconds(rate.per));
            shown.push(ExposedRate { name, quota: u64::from(rate.count.get()) });
        }
        Some(Self { policy: HeaderValue::try_from(policy).ok()?, rates: shown })
    }
}

impl RateState<'_> {
    fn is_closer_than(self, other: Self) -> bool {
        let own = u128::from(self.remaining) * u128::from(other.rate.quota);
        let others = u128::from(other.remaining) * u128::from(self.rate.quota);
        own < others || own == others && self.reset > other.reset
    }

    fn to_header(self) -> HeaderValue {
        let mut text = Vec::with_capacity(self.rate.name.len() + 32);
        text.extend_from_slice(self.rate.name.as_bytes());
        text.extend_from_slice(b";r=");
        text.extend_from_slice(itoa::Buffer::new().format(self.remaining).as_bytes());
        text.extend_from_slice(b";t=");
        text.extend_from_slice(itoa::Buffer::new().format(self.reset).as_bytes());
        HeaderValue::try_from(text).expect("quoted names and digits are visible")
    }
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
