//! `portcullis events`: prints the events of a running gateway as they happen.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::client::StreamEnd;
use super::gateway::GatewayArguments;
use super::gateway::read_response;
use super::gateway::report_unreachable;
use super::past_events::past_events;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::units::Span;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis events
  portcullis events --since 10m
  portcullis events --format json | jq 'select(.event == \"ban\")'

One line for each denial, delay, ban, unban and reload from now on, until the gateway ends or Ctrl-C.
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

/// What the gateway remembers.
const MAX_MINUTES: u16 = 24 * 60;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use proptest::prelude::*;

    use super::*;

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
