//! A line for each request: what it says is told once, and each format has its own names for it.

mod ecs;
mod fields;
mod human;
mod json;
mod otel;

use super::LogFormat;
use super::RequestRecord;
use super::line::escaped;
use super::line::raw;
use super::meters::LimitMeter;
use crate::clock::Timestamp;

/// The names an request knows only by position, and of what it knows what not every line says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) route: Option<&'a str>,
    pub(super) upstream: Option<&'a str>,
    /// Where lines have it.
    pub(super) query: Option<&'a str>,
    /// By `LimitId`.
    pub(super) limits: &'a [LimitMeter],
}

/// Appends the line of one request.
pub(super) fn write(
    line: &mut Vec<u8>,
    format: LogFormat,
    at: Timestamp,
    request: &RequestRecord<'_>,
    named: &Named<'_>,
) {
    match format {
        LogFormat::Json => json::write(line, at, request, named),
        LogFormat::Human => human::write(line, at, request, named),
        LogFormat::Ecs => ecs::write(line, at, request, named),
        LogFormat::Otel => otel::write(line, at, request, named),
    }
}

/// Names of the shadow limits that would have denied.
fn shadow<'a>(request: &'a RequestRecord<'_>, named: &'a Named<'_>) -> impl Iterator<Item = &'a str> {
    let denied = request.limits.iter().filter(|report| report.shadow && report.denied);
    denied.map(|report| &*named.limits[usize::from(report.limit.0)].name)
}

/// `POST example.com/login 429 denied`, within a string of JSON.
fn sentence(line: &mut Vec<u8>, request: &RequestRecord<'_>) {
    raw(line, request.method.as_str());
    line.push(b' ');
    escaped(line, request.host);
    escaped(line, request.path);
    line.push(b' ');
    raw(line, request.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    raw(line, request.decision.as_str());
}

#[cfg(test)]
mod tests;
