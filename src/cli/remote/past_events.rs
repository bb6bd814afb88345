//! `portcullis events --since`: what was denied lately, and what was banned and reloaded, what is alike as one line.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::event_groups;
use super::gateway::GatewayArguments;
use super::past_line::PastLine;
use super::past_line::key_owner;
use super::past_line::span_words;
use super::selector_value::path_segment;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::output::thousands;

/// The denials, or the delays, of one key by one limit.
#[derive(Debug)]
struct Denials<'l> {
    limit: &'l LimitView,
    busy: BusyKey,
}

/// As `/api/v1/top` tells it.
#[derive(Debug, Deserialize)]
struct BusyKey {
    key: BTreeMap<String, String>,
    denied: u64,
    first: String,
    last: String,
}

#[derive(Debug, Deserialize)]
struct LimitView {
    name: String,
    then: ThenView,
}

/// What the limit does when it is reached.
#[derive(Debug, Deserialize)]
struct ThenView {
    delay: Option<String>,
}

/// Prints the lines, the one that ended last at the end, as a log would.
pub(super) fn past_events(gateway: &GatewayArguments, minutes: u16, format: Format) -> anyhow::Result<Exit> {
    let mut lines = match lines(gateway, minutes)? {
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

fn lines(gateway: &GatewayArguments, minutes: u16) -> anyhow::Result<Result<Vec<PastLine>, Exit>> {
    let limits: Vec<LimitView> = match ask(gateway, "/api/v1/limits")? {
        Ok(limits) => limits,
        Err(exit) => return Ok(Err(exit)),
    };
    let mut lines = match ask(gateway, &format!("/api/v1/events/recent?minutes={minutes}"))? {
        Ok(events) => event_groups::lines(events),
        Err(exit) => return Ok(Err(exit)),
    };
    for limit in &limits {
        let name = path_segment(&limit.name);
        let target = format!("/api/v1/top?limit={name}&by=denied&n={MOST}&minutes={minutes}");
        let busiest: Vec<BusyKey> = match ask(gateway, &target)? {
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
        let Self { limit, busy: BusyKey { key, denied, first, last } } = self;
        let json =
            json!({"event": event, "limit": limit.name, "key": key, "denied": denied, "first": first, "last": last});
        PastLine { last, words, json }
    }

    fn event(&self) -> &'static str {
        if self.limit.then.delay.is_some() { "delay" } else { "denial" }
    }

    /// `12:03:24  9,812 denials of login-pace for 198.51.100.7 in 20 s`
    fn words(&self) -> String {
        let Self { limit, busy: BusyKey { key, denied, first, last } } = self;
        let noun = self.event();
        let plural = if *denied == 1 { "" } else { "s" };
        let (who, span) = (key_owner(key), span_words(first, last));
        output::plain(&format!("{last}  {} {noun}{plural} of {} for {who}{span}", thousands(*denied), limit.name))
    }
}

/// The most keys of a limit that are printed.
const MOST: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(key: &[(&str, &str)], denied: u64, first: &str) -> String {
        words_of(None, key, denied, first)
    }

    fn words_of(delay: Option<&str>, key: &[(&str, &str)], denied: u64, first: &str) -> String {
        let key = key.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let busy = BusyKey { key, denied, first: first.into(), last: "2026-11-23T12:03:24.000Z".into() };
        let limit = LimitView { name: "login-pace".into(), then: ThenView { delay: delay.map(Into::into) } };
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
}
