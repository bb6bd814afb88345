//! Writes the line of a request in the configured format.

use super::ecs;
use super::human;
use super::json;
use super::line_context::LineContext;
use super::otel;
use crate::clock::Timestamp;
use crate::record::LogFormat;
use crate::record::RequestRecord;

/// Appends the line of one request.
pub(in crate::record) fn write(
    line: &mut Vec<u8>,
    format: LogFormat,
    at: Timestamp,
    request: &RequestRecord<'_>,
    context: &LineContext<'_>,
) {
    match format {
        LogFormat::Json => json::write(line, at, request, context),
        LogFormat::Human => human::write(line, at, request, context),
        LogFormat::Ecs => ecs::write(line, at, request, context),
        LogFormat::Otel => otel::write(line, at, request, context),
    }
}

#[cfg(test)]
mod tests;
