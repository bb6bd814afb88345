//! Lines for people.

use super::LineContext;
use crate::record::line::{millis, plain, raw, time};
use crate::record::{ObservedOutcome, RequestRecord};
use crate::words::clock::Timestamp;
use crate::words::digits::{push_address, push_decimal};

pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    time(line, at);
    line.push(b' ');
    push_address(line, request.identity.client.address());
    for word in [request.method.as_str(), request.host] {
        line.push(b' ');
        plain(line, word);
    }
    plain(line, request.path);
    if let Some(query) = context.query {
        line.push(b'?');
        plain(line, query);
    }
    line.push(b' ');
    plain(line, request.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    plain(line, request.decision.as_str());
    labelled(line, "limit", request.limit);
    labelled(line, "list", request.list);
    if let Some(key) = request.applied_limit.and_then(|applied| applied.masked_key.as_ref()) {
        for (selector, value) in &key.parts {
            labelled(line, selector, Some(value));
        }
    }
    labelled(line, "unread", request.unread.map(|_| "true"));
    labelled(line, "ban", request.ban);
    if let Some(seconds) = request.retry_after {
        raw(line, " retry_after=");
        push_decimal(line, seconds);
    }
    labelled(line, "outcome", request.outcome.map(ObservedOutcome::as_str));
    labelled(line, "route", context.route);
    labelled(line, "upstream", context.upstream);
    labelled(line, "server", request.upstream.and_then(|forwarded| forwarded.server));
    labelled(line, "upstream_id", request.upstream.and_then(|forwarded| forwarded.request_id));
    for limit in context.shadow_limits(request) {
        labelled(line, "shadow", Some(limit));
    }
    line.push(b' ');
    millis(line, request.duration);
    raw(line, "ms");
    labelled(line, "id", Some(request.request_id));
    labelled(line, "error", request.error);
    line.push(b'\n');
}

fn labelled(line: &mut Vec<u8>, label: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    line.push(b' ');
    plain(line, label);
    line.push(b'=');
    if value.contains(' ') {
        line.push(b'"');
        plain(line, value);
        line.push(b'"');
    } else {
        plain(line, value);
    }
}
