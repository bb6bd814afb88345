//! Lines for people.

use super::Named;
use super::shadow;
use crate::clock::Timestamp;
use crate::record::Event;
use crate::record::Meaning;
use crate::record::line::address;
use crate::record::line::millis;
use crate::record::line::plain;
use crate::record::line::put;
use crate::record::line::raw;
use crate::record::line::time;

pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, event: &Event<'_>, named: &Named<'_>) {
    time(line, at);
    line.push(b' ');
    address(line, event.identity.client.address());
    for word in [event.method.as_str(), event.host] {
        line.push(b' ');
        plain(line, word);
    }
    plain(line, event.path);
    if let Some(query) = named.query {
        line.push(b'?');
        plain(line, query);
    }
    line.push(b' ');
    plain(line, event.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    plain(line, event.decision.as_str());
    labelled(line, "limit", event.limit);
    if let Some(key) = event.subject.and_then(|subject| subject.shown.as_ref()) {
        for (selector, value) in &key.masked {
            labelled(line, selector, Some(value));
        }
    }
    labelled(line, "ban", event.ban);
    if let Some(seconds) = event.retry_after {
        raw(line, " retry_after=");
        put(line, seconds);
    }
    labelled(line, "outcome", event.meaning.map(Meaning::as_str));
    labelled(line, "route", named.route);
    labelled(line, "upstream", named.upstream);
    labelled(line, "server", event.forwarded.and_then(|forwarded| forwarded.server));
    for limit in shadow(event, named) {
        labelled(line, "shadow", Some(limit));
    }
    line.push(b' ');
    millis(line, event.duration);
    raw(line, "ms");
    labelled(line, "id", Some(event.request_id));
    labelled(line, "error", event.error);
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
