//! `portcullis events --since`: what was denied lately, a line for each limit and key.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::gateway::GatewayArguments;
use super::selector_value::path_segment;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::output::thousands;

/// The denials of one key by one limit.
#[derive(Debug)]
struct Group {
    limit: String,
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
struct LimitName {
    name: String,
}

/// Prints the groups, the one that ended last at the end, as a log would.
pub(super) fn past_events(gateway: &GatewayArguments, since: Duration, format: Format) -> anyhow::Result<Exit> {
    let limits = match gateway.ask(Method::GET, "/api/v1/limits")? {
        Ok(limits) => serde_json::from_value::<Vec<LimitName>>(limits)?,
        Err(exit) => return Ok(exit),
    };
    let minutes = since.as_secs().div_ceil(60).clamp(1, MAX_MINUTES);
    let mut groups = Vec::new();
    for LimitName { name } in limits {
        let target = format!("/api/v1/top?limit={}&by=denied&n={MOST}&minutes={minutes}", path_segment(&name));
        let busiest = match gateway.ask(Method::GET, &target)? {
            Ok(busiest) => serde_json::from_value::<Vec<BusyKey>>(busiest)?,
            Err(exit) => return Ok(exit),
        };
        groups.extend(busiest.into_iter().map(|busy| Group { limit: name.clone(), busy }));
    }
    groups.sort_by(|one, other| one.busy.last.cmp(&other.busy.last));
    match format {
        Format::Json => {
            let groups = groups.iter().map(|Group { limit, busy: BusyKey { key, denied, first, last } }| {
                json!({"limit": limit, "key": key, "denied": denied, "first": first, "last": last})
            });
            output::print_json(&groups.collect::<Vec<_>>());
        }
        Format::Human if groups.is_empty() => output::print("nothing was denied"),
        Format::Human => groups.iter().for_each(|group| output::print(&group.to_words())),
    }
    Ok(Exit::Done)
}

impl Group {
    /// `12:03:24  9,812 denials of login-pace for 198.51.100.7 in 20 s`
    fn to_words(&self) -> String {
        let Self { limit, busy: BusyKey { key, denied, first, last } } = self;
        let who = match key.iter().collect::<Vec<_>>()[..] {
            [] => "all".to_owned(),
            [(selector, value)] if selector == "client_ip" => value.clone(),
            ref parts => parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
        };
        let noun = if *denied == 1 { "denial" } else { "denials" };
        let span = span(first, last).filter(|seconds| *seconds > 0);
        let span = span.map(|seconds| format!(" in {seconds} s")).unwrap_or_default();
        output::plain(&format!("{last}  {} {noun} of {limit} for {who}{span}", thousands(*denied)))
    }
}

/// In whole seconds, rounded up; `None`: these are no moments.
fn span(first: &str, last: &str) -> Option<i64> {
    let (first, last) = (first.parse::<Timestamp>().ok()?, last.parse::<Timestamp>().ok()?);
    Some(last.duration_since(first).as_millis().max(0)).and_then(|millis| i64::try_from((millis + 999) / 1000).ok())
}

/// The most keys of a limit that are printed.
const MOST: u64 = 1000;

/// What the gateway remembers.
const MAX_MINUTES: u64 = 24 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(key: &[(&str, &str)], denied: u64, first: &str) -> String {
        let key = key.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let busy = BusyKey { key, denied, first: first.into(), last: "2026-11-23T12:03:24.000Z".into() };
        Group { limit: "login-pace".into(), busy }.to_words()
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
    }
}
