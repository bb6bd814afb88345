//! The message of a line in the formats that want one.

use crate::record::RequestRecord;
use crate::record::line::escaped;
use crate::record::line::raw;

/// `POST example.com/login 429 denied`, within a JSON string.
pub(super) fn message(line: &mut Vec<u8>, request: &RequestRecord<'_>) {
    raw(line, request.method.as_str());
    line.push(b' ');
    escaped(line, request.host);
    escaped(line, request.path);
    line.push(b' ');
    raw(line, request.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    raw(line, request.decision.as_str());
}
