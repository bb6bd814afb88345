//! `portcullis events`: prints the events of a running gateway as they happen.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::Context;
use http::Method;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::StreamEnd;
use super::gateway::{GatewayArguments, read_response, report_unreachable};
use crate::api::events::{BusyKeyResponse, EventResponse};
use crate::api::limits::LimitResponse;
use crate::cli::output;
use crate::cli::program::{Exit, Format};
use crate::cli::remote::limits::path_segment;
use crate::words::units::{Span, thousands};

/// What the gateway remembers.
const MAX_MINUTES: u16 = 24 * 60;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis events
  portcullis events --since 10m
  portcullis events --format json | jq 'select(.event == \"ban\")'

One line for each denial, delay, ban, unban, reload and sign-in after failures from now on, until the gateway ends or Ctrl-C.
Keys are masked. Of more than 500 denials and delays in a second, and for a reader that is too slow, a line says how many
are not shown: `portcullis top` counts all of them.
With --since: what limits denied or held in that time, one line for each limit and key, and bans, unbans and reloads, those
that are alike in one line; the latest last.

Exit codes: 0 the gateway ended the stream, 1 it refused the request, 3 it could not be reached or the connection
broke.")]
pub(in crate::cli) struct Arguments {
    /// Print what was denied, banned and reloaded in this time until now instead, in whole minutes up to 24h
    #[arg(long, value_name = "DURATION", value_parser = past_minutes)]
    since: Option<u16>,
    #[command(flatten)]
    gateway: GatewayArguments,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

pub(in crate::cli) fn events(Arguments { since, gateway, format }: &Arguments) -> anyhow::Result<Exit> {
    if let Some(minutes) = since {
        return past_events(gateway, *minutes, *format);
    }
    let client = gateway.client()?;
    let mut parser = EventParser::default();
    let mut printed = Ok(());
    let followed = client.follow("/api/v1/events", |chunk| {
        for data in parser.data(chunk) {
            let Ok(event) = serde_json::from_str::<Value>(&data) else { continue };
            let line = match format {
                Format::Human => event_line(&event),
                Format::Json => data,
            };
            let flow = output::print_event_line(&line).unwrap_or_else(|error| {
                printed = Err(error);
                ControlFlow::Break(())
            });
            if flow.is_break() {
                return flow;
            }
        }
        ControlFlow::Continue(())
    });
    printed?;
    Ok(match followed {
        Ok(StreamEnd::Ended) => Exit::Done,
        Ok(StreamEnd::Refused(answer)) => read_response(&client, &answer).err().unwrap_or(Exit::Wrong),
        Err(error) => report_unreachable(&client, &error),
    })
}

/// The minutes of a duration: what the gateway remembers, in its steps.
fn past_minutes(text: &str) -> anyhow::Result<u16> {
    let Span(span) = text.parse()?;
    let minutes = u16::try_from(span.as_secs() / 60).ok();
    let minutes = minutes.filter(|&minutes| span == Duration::from_secs(60 * u64::from(minutes)));
    minutes.filter(|minutes| (1..=MAX_MINUTES).contains(minutes)).context("write whole minutes, from `1m` up to `24h`")
}

/// Finds the events in a stream that comes in pieces of any size.
#[derive(Debug, Default)]
struct EventParser {
    rest: Vec<u8>,
}

impl EventParser {
    /// The data of each event whose line is complete.
    fn data(&mut self, chunk: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(chunk);
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        let text = String::from_utf8_lossy(&lines);
        text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }
}

/// `12:03:04  ban  login-guessing  client_ip=198.51.100.*  until ...`
fn event_line(event: &Value) -> String {
    let text = |name: &str| event[name].as_str();
    if let Some(lost) = event["lost"].as_u64() {
        let (noun, verb, they) = if lost == 1 { ("event", "is", "it") } else { ("events", "are", "they") };
        return format!("{lost} more {noun} {verb} not shown: {they} came too fast");
    }
    let key = event["key"].as_object().map(|key| {
        let parts: Vec<_> =
            key.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
        parts.join(" ")
    });
    let parts = [
        text("time").map(str::to_owned),
        text("event").map(|event| format!("{event:<9}")),
        text("limit").map(str::to_owned),
        text("list").map(|list| format!("list {list}")),
        key.filter(|key| !key.is_empty()),
        text("address").map(str::to_owned),
        text("account").map(|account| format!("account {account}")),
        text("client").map(|client| format!("client {client}")),
        text("until").map(|until| format!("until {until}")),
        text("route").map(|route| format!("route {route}")),
        text("request_id").map(|id| format!("request {id}")),
        text("reason").map(|reason| format!("({reason})")),
    ];
    // Without control characters it cannot move a terminal's cursor or begin another line.
    let line = parts.into_iter().flatten().collect::<Vec<_>>().join("  ");
    line.chars().filter(|letter| !letter.is_control()).collect()
}

// `portcullis events --since`: what was denied lately, and what was banned and reloaded, what is alike as one line.

/// The most keys of a limit that are printed.
const MOST: u64 = 1000;

/// The denials, or the delays, of one key by one limit.
#[derive(Debug)]
struct Denials<'l> {
    limit: &'l LimitResponse,
    busy: BusyKeyResponse,
}

/// Prints the lines, the one that ended last at the end, as a log would.
pub(super) fn past_events(gateway: &GatewayArguments, minutes: u16, format: Format) -> anyhow::Result<Exit> {
    let mut lines = match past_lines(gateway, minutes)? {
        Ok(lines) => lines,
        Err(exit) => return Ok(exit),
    };
    lines.sort_by(|one, other| one.last.cmp(&other.last));
    match format {
        Format::Json => output::print_json(&lines.iter().map(|line| &line.json).collect::<Vec<_>>()),
        Format::Human if lines.is_empty() => output::print("nothing was denied, banned or reloaded"),
        Format::Human => lines.iter().try_for_each(|line| output::print(&line.words)),
    }?;
    Ok(Exit::Done)
}

fn past_lines(gateway: &GatewayArguments, minutes: u16) -> anyhow::Result<Result<Vec<PastLine>, Exit>> {
    let limits: Vec<LimitResponse> = match ask(gateway, "/api/v1/limits")? {
        Ok(limits) => limits,
        Err(exit) => return Ok(Err(exit)),
    };
    let mut lines = match ask(gateway, &format!("/api/v1/events/recent?minutes={minutes}"))? {
        Ok(events) => lines(events),
        Err(exit) => return Ok(Err(exit)),
    };
    for limit in &limits {
        let name = path_segment(&limit.name);
        let target = format!("/api/v1/top?limit={name}&by=denied&n={MOST}&minutes={minutes}");
        let busiest: Vec<BusyKeyResponse> = match ask(gateway, &target)? {
            Ok(busiest) => busiest,
            Err(exit) => return Ok(Err(exit)),
        };
        lines.extend(busiest.into_iter().map(|busy| Denials { limit, busy }.line()));
    }
    Ok(Ok(lines))
}

fn ask<T: DeserializeOwned>(gateway: &GatewayArguments, target: &str) -> anyhow::Result<Result<T, Exit>> {
    Ok(match gateway.ask(Method::GET, target)? {
        Ok(answer) => Ok(serde_json::from_value(answer)?),
        Err(exit) => Err(exit),
    })
}

impl Denials<'_> {
    fn line(self) -> PastLine {
        let (words, event) = (self.words(), self.event());
        let Self { limit, busy: BusyKeyResponse { key, denied, first, last, .. } } = self;
        let json =
            json!({"event": event, "limit": limit.name, "key": key, "denied": denied, "first": first, "last": last});
        PastLine { last, words, json }
    }

    fn event(&self) -> &'static str {
        if self.limit.then.delay.is_some() { "delay" } else { "denial" }
    }

    /// `12:03:24  9,812 denials of login-pace for 198.51.100.7 in 20 s`
    fn words(&self) -> String {
        let Self { limit, busy: BusyKeyResponse { key, denied, first, last, .. } } = self;
        let noun = self.event();
        let plural = if *denied == 1 { "" } else { "s" };
        let (who, span) = (key_owner(key), span_words(first, last));
        output::plain(&format!("{last}  {} {noun}{plural} of {} for {who}{span}", thousands(*denied), limit.name))
    }
}

// Bans, unbans and reloads of the past, those that are alike as one line.

/// A line names so many of those that were banned.
const SUBJECTS_SHOWN: usize = 3;

/// Events of one kind by one limit, for one reason.
#[derive(Debug)]
struct Group {
    /// The newest first.
    events: Vec<EventResponse>,
}

/// One line for each group. `events`: the newest first.
pub(super) fn lines(events: Vec<EventResponse>) -> Vec<PastLine> {
    let mut groups: Vec<Group> = Vec::new();
    for event in events {
        match groups.iter_mut().find(|group| group.newest().is_like(&event)) {
            Some(group) => group.events.push(event),
            None => groups.push(Group { events: vec![event] }),
        }
    }
    groups.iter().map(Group::line).collect()
}

impl EventResponse {
    fn is_like(&self, other: &Self) -> bool {
        (&self.event, &self.limit, &self.reason) == (&other.event, &other.limit, &other.reason)
    }

    /// Who is banned; `None`: it is a reload.
    fn subject(&self) -> Option<String> {
        self.account.clone().or_else(|| self.address.clone()).or_else(|| self.key.as_ref().map(key_owner))
    }
}

impl Group {
    fn newest(&self) -> &EventResponse {
        &self.events[0]
    }

    fn line(&self) -> PastLine {
        let last = self.newest().time.clone();
        PastLine { words: output::plain(&format!("{last}  {}", self.words())), json: self.json(), last }
    }

    /// `12 bans by knocks in 20 s: 198.51.100.7, 198.51.100.8, 198.51.100.9 and 9 more`
    fn words(&self) -> String {
        let EventResponse { event, limit, until, reason, .. } = self.newest();
        let event = event.as_str();
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
        let EventResponse { event, limit, reason, until, .. } = self.newest();
        json!({
            "event": event.as_str(), "limit": limit, "reason": reason, "count": self.events.len(), "subjects": self.subjects(),
            "until": until, "first": self.first().time, "last": self.newest().time,
        })
    }

    fn first(&self) -> &EventResponse {
        &self.events[self.events.len() - 1]
    }

    /// Each once, the newest first.
    fn subjects(&self) -> Vec<String> {
        let mut subjects: Vec<String> = Vec::new();
        for subject in self.events.iter().filter_map(EventResponse::subject) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        subjects
    }
}

// One line of what happened.

/// One line of the output, in words and for programs.
#[derive(Debug)]
pub(super) struct PastLine {
    /// RFC 3339.
    pub(super) last: String,
    pub(super) words: String,
    pub(super) json: Value,
}

/// Whose key it is: `198.51.100.7`, or `client_ip=198.51.100.7 param.username=a***`.
pub(super) fn key_owner(key: &BTreeMap<String, String>) -> String {
    match key.iter().collect::<Vec<_>>()[..] {
        [] => "all".to_owned(),
        [(selector, value)] if selector == "client_ip" => value.clone(),
        ref parts => parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
    }
}

/// ` in 20 s`, rounded up. Empty: it took no time, or these are no moments.
pub(super) fn span_words(first: &str, last: &str) -> String {
    let seconds = || {
        let (first, last) = (first.parse::<Timestamp>().ok()?, last.parse::<Timestamp>().ok()?);
        Some((last.duration_since(first).as_millis().max(0) + 999) / 1000).filter(|seconds| *seconds > 0)
    };
    seconds().map(|seconds| format!(" in {seconds} s")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn words(key: &[(&str, &str)], denied: u64, first: &str) -> String {
        words_of(None, key, denied, first)
    }

    fn words_of(delay: Option<&str>, key: &[(&str, &str)], denied: u64, first: &str) -> String {
        let key = key.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let last = "2026-11-23T12:03:24.000Z".into();
        let busy = BusyKeyResponse { key, requests: denied, denied, failed: 0, first: first.into(), last };
        let limit = serde_json::from_value(json!({
            "name": "login-pace", "key": [], "rates": [], "count": "requests", "missing": "count",
            "then": {"delay": delay, "notify": []}, "shadow": false, "unless": [], "headers": "full", "on_failure": "local",
            "everywhere": false, "routes": [],
        }));
        let limit = limit.unwrap();
        Denials { limit: &limit, busy }.words()
    }

    #[test]
    fn many_denials_of_one_key_are_one_line() {
        assert_eq!(
            words(&[("client_ip", "198.51.100.7")], 9812, "2026-11-23T12:03:04.100Z"),
            "2026-11-23T12:03:24.000Z  9,812 denials of login-pace for 198.51.100.7 in 20 s"
        );
        assert_eq!(
            words(&[("client_ip", "198.51.100.7"), ("param.user", "a\u{1b}")], 1, "2026-11-23T12:03:24.000Z"),
            "2026-11-23T12:03:24.000Z  1 denial of login-pace for client_ip=198.51.100.7 param.user=a"
        );
        assert!(words(&[], 2, "x").ends_with("2 denials of login-pace for all"));
        assert!(words_of(Some("20s"), &[], 2, "x").ends_with("2 delays of login-pace for all"));
        assert!(words_of(Some("20s"), &[], 1, "x").ends_with("1 delay of login-pace for all"));
    }

    #[track_caller]
    fn check(events: &Value, expected: &[&str]) {
        let events: Vec<EventResponse> = serde_json::from_value(events.clone()).unwrap();
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

    #[test]
    fn events_are_found_wherever_the_stream_is_cut() {
        let stream = b": hello\n\nid: 1\nevent: ban\ndata: {\"a\":1}\n\nid: 2\nevent: ban\ndata: {\"b\":2}\n\n";
        for cut in 0..stream.len() {
            let mut parser = EventParser::default();
            let (first, second) = stream.split_at(cut);
            let found = [parser.data(first), parser.data(second)].concat();
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"], "{cut}");
        }
    }

    #[test]
    fn whole_minutes_of_a_day_may_be_asked_for() {
        for (text, minutes) in [("1m", 1), ("60s", 1), ("10m", 10), ("24h", 1440), ("1d", 1440)] {
            assert_eq!(past_minutes(text).ok(), Some(minutes), "{text}");
        }
        for text in ["0", "0m", "59s", "90s", "1441m", "25h", "60001ms", "50d"] {
            let refused = past_minutes(text).unwrap_err().to_string();
            assert_eq!(refused, "write whole minutes, from `1m` up to `24h`", "{text}");
        }
    }

    #[test]
    fn an_event_is_one_line_for_people() {
        let event = json!({
            "time": "2026-11-21T12:00:00.000Z", "event": "ban", "limit": "login", "client": "198.51.100.7",
            "key": {"param.username": "a***"}, "until": "2026-11-21T12:15:00.000Z", "reason": "a\u{1b}[31m\nb",
        });
        assert_eq!(
            event_line(&event),
            "2026-11-21T12:00:00.000Z  ban        login  param.username=a***  client 198.51.100.7  \
             until 2026-11-21T12:15:00.000Z  (a[31mb)"
        );
        assert_eq!(event_line(&json!({"event": "lost", "lost": 7})), "7 more events are not shown: they came too fast");
        assert_eq!(event_line(&json!({"event": "lost", "lost": 1})), "1 more event is not shown: it came too fast");
    }

    proptest! {
        #[test]
        fn events_are_the_same_wherever_the_stream_is_cut(stream in "(data: x|data:|: y|\n|\r\n|\u{e9}){0,16}", cut in 0..80_usize) {
            let whole = EventParser::default().data(stream.as_bytes());
            let (first, second) = stream.as_bytes().split_at(cut.min(stream.len()));
            let mut parser = EventParser::default();
            let mut parts = parser.data(first);
            parts.extend(parser.data(second));
            prop_assert_eq!(parts, whole);
        }
    }
}
