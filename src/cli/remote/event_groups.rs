//! Bans, unbans and reloads of the past, those that are alike as one line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::past_line::PastLine;
use super::past_line::key_owner;
use super::past_line::span_words;
use crate::cli::output;
use crate::cli::output::thousands;

/// As `/api/v1/events/recent` tells it.
#[derive(Debug, Deserialize)]
pub(super) struct PastEvent {
    time: String,
    event: String,
    limit: Option<String>,
    key: Option<BTreeMap<String, String>>,
    until: Option<String>,
    address: Option<String>,
    reason: Option<String>,
}

/// Events of one kind by one limit, for one reason.
#[derive(Debug)]
struct Group {
    /// The newest first.
    events: Vec<PastEvent>,
}

/// One line for each group. `events`: the newest first.
pub(super) fn lines(events: Vec<PastEvent>) -> Vec<PastLine> {
    let mut groups: Vec<Group> = Vec::new();
    for event in events {
        match groups.iter_mut().find(|group| group.newest().is_like(&event)) {
            Some(group) => group.events.push(event),
            None => groups.push(Group { events: vec![event] }),
        }
    }
    groups.iter().map(Group::line).collect()
}

impl PastEvent {
    fn is_like(&self, other: &Self) -> bool {
        (&self.event, &self.limit, &self.reason) == (&other.event, &other.limit, &other.reason)
    }

    /// Who is banned; `None`: it is a reload.
    fn subject(&self) -> Option<String> {
        self.address.clone().or_else(|| self.key.as_ref().map(key_owner))
    }
}

impl Group {
    fn newest(&self) -> &PastEvent {
        &self.events[0]
    }

    fn line(&self) -> PastLine {
        let last = self.newest().time.clone();
        PastLine { words: output::plain(&format!("{last}  {}", self.words())), json: self.json(), last }
    }

    /// `12 bans by knocks in 20 s: 198.51.100.7, 198.51.100.8, 198.51.100.9 and 9 more`
    fn words(&self) -> String {
        let PastEvent { event, limit, until, reason, .. } = self.newest();
        let by = limit.as_ref().map(|limit| format!(" by {limit}")).unwrap_or_default();
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let count = self.events.len();
        if count == 1 {
            let of = self.newest().subject().map(|subject| format!(" of {subject}")).unwrap_or_default();
            let until = until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
            return format!("{event}{of}{by}{until}{reason}");
        }
        let span = span_words(&self.first().time, &self.newest().time);
        let subjects = self.subjects();
        let (shown, more) = subjects.split_at(subjects.len().min(SUBJECTS_SHOWN));
        let shown = if shown.is_empty() { String::new() } else { format!(": {}", shown.join(", ")) };
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        format!("{} {event}s{by}{span}{reason}{shown}{more}", thousands(count as u64))
    }

    fn json(&self) -> Value {
        let PastEvent { event, limit, reason, until, .. } = self.newest();
        json!({
            "event": event, "limit": limit, "reason": reason, "count": self.events.len(), "subjects": self.subjects(),
            "until": until, "first": self.first().time, "last": self.newest().time,
        })
    }

    fn first(&self) -> &PastEvent {
        &self.events[self.events.len() - 1]
    }

    /// Each once, the newest first.
    fn subjects(&self) -> Vec<String> {
        let mut subjects: Vec<String> = Vec::new();
        for subject in self.events.iter().filter_map(PastEvent::subject) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        subjects
    }
}

/// A line names so many of those that were banned.
const SUBJECTS_SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(events: &Value, expected: &[&str]) {
        let events: Vec<PastEvent> = serde_json::from_value(events.clone()).unwrap();
        let words: Vec<_> = lines(events).into_iter().map(|line| line.words).collect();
        assert_eq!(words, expected);
    }

    fn ban(second: u32, address: &str) -> Value {
        let (time, until) = (format!("2026-11-23T12:03:{second:02}.000Z"), "2026-11-23T13:00:00.000Z");
        json!({"time": time, "event": "ban", "limit": "knocks", "key": {"client_ip": address}, "until": until})
    }

    #[test]
    fn one_event_is_told_whole() {
        check(
            &json!([
                {"time": "3", "event": "reload", "limit": null, "key": null, "until": null, "reason": "done: x\u{1b}"},
                {"time": "2", "event": "unban", "limit": "knocks", "key": {}, "until": null},
                {"time": "1", "event": "ban", "limit": null, "key": null, "until": "9", "address": "198.51.100.0/24",
                    "reason": "scraping"},
            ]),
            &["3  reload: done: x", "2  unban of all by knocks", "1  ban of 198.51.100.0/24 until 9: scraping"],
        );
    }

    #[test]
    fn events_that_are_alike_are_one_line() {
        let five = [(9, "d"), (8, "c"), (7, "b"), (6, "d"), (4, "a")].map(|(second, address)| ban(second, address));
        check(&five.into(), &["2026-11-23T12:03:09.000Z  5 bans by knocks in 5 s: d, c, b and 1 more"]);
        let reload =
            json!({"time": "1", "event": "reload", "limit": null, "key": null, "until": null, "reason": "done"});
        check(
            &json!([reload, reload, ban(1, "a")]),
            &["1  2 reloads: done", "2026-11-23T12:03:01.000Z  ban of a by knocks until 2026-11-23T13:00:00.000Z"],
        );
    }
}
