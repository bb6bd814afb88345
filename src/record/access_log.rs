//! A line for each request: what it says is told once, and each format has its own names for it.

mod ecs;
mod fields;
mod human;
mod json;
mod otel;

use super::Event;
use super::LogFormat;
use super::line::escaped;
use super::line::raw;
use super::recorder::LimitMeter;
use crate::clock::Timestamp;

/// The names an event knows only by position, and of what it knows what not every line says.
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
pub(super) fn write(line: &mut Vec<u8>, format: LogFormat, at: Timestamp, event: &Event<'_>, named: &Named<'_>) {
    match format {
        LogFormat::Json => json::write(line, at, event, named),
        LogFormat::Human => human::write(line, at, event, named),
        LogFormat::Ecs => ecs::write(line, at, event, named),
        LogFormat::Otel => otel::write(line, at, event, named),
    }
}

/// Names of the shadow limits that would have denied.
fn shadow<'a>(event: &'a Event<'_>, named: &'a Named<'_>) -> impl Iterator<Item = &'a str> {
    let denied = event.limits.iter().filter(|report| report.shadow && report.denied);
    denied.map(|report| &*named.limits[usize::from(report.limit.0)].name)
}

/// `POST example.com/login 429 denied`, within a string of JSON.
fn sentence(line: &mut Vec<u8>, event: &Event<'_>) {
    raw(line, event.method.as_str());
    line.push(b' ');
    escaped(line, event.host);
    escaped(line, event.path);
    line.push(b' ');
    raw(line, event.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    raw(line, event.decision.as_str());
}

#[cfg(test)]
mod tests;
