//! `portcullis limits`: lists the limits of a running gateway, and shows or resets one key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use super::gateway::RemoteArguments;
use crate::api::bans::KeyBanResponse;
use crate::api::limits::{KeyStateResponse, LimitResponse, RateStateResponse, ThenResponse};
use crate::cli::output;
use crate::cli::output::Table;
use crate::cli::program::{Exit, Format};
use crate::rules::limit::{AlgorithmName, Count, Rate};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis limits list
  portcullis limits show login-pace client_ip=198.51.100.7
  portcullis limits reset login-failures client_ip=198.51.100.7 param.username=alice

A key is named by the selectors of the limit, in any order; a limit of `key: []` takes none.
Exit codes: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the limits in force
    List(RemoteArguments),
    /// Show the state of one key; charges nothing
    Show(KeyArguments),
    /// Reset the counters of one key, on every gateway of the same store
    Reset(KeyArguments),
}

#[derive(Debug, clap::Args)]
struct KeyArguments {
    /// The name of the limit
    #[arg(value_name = "NAME")]
    name: String,
    /// The key: a value for each of its selectors
    #[arg(value_name = "SELECTOR=VALUE", value_parser = parse_pair)]
    values: Vec<(String, String)>,
    #[command(flatten)]
    remote: RemoteArguments,
}

pub(in crate::cli) fn limits(arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::List(remote) => list(remote),
        Command::Show(key) => show(key),
        Command::Reset(key) => reset(key),
    }
}

fn list(RemoteArguments { gateway, format }: &RemoteArguments) -> anyhow::Result<Exit> {
    let answer = match gateway.ask(Method::GET, "/api/v1/limits")? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match format {
        Format::Json => output::print_json(&answer)?,
        Format::Human => {
            let limits: Vec<LimitResponse> = serde_json::from_value(answer)?;
            let mut table = Table::new(["NAME", "RULE", "KEY", "WHERE", "THEN", "MORE"]);
            for limit in &limits {
                table.row([
                    limit.name.clone(),
                    limit.rule_words(),
                    limit.key_words(),
                    limit.scope_words(),
                    limit.then.to_words(),
                    limit.more_words(),
                ]);
            }
            if limits.is_empty() { output::print("no limits")? } else { output::print(&table.to_string())? }
        }
    }
    Ok(Exit::Done)
}

fn show(key: &KeyArguments) -> anyhow::Result<Exit> {
    let answer = match key.remote.gateway.ask(Method::GET, &key.target())? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match key.remote.format {
        Format::Json => output::print_json(&answer),
        Format::Human => output::print(&serde_json::from_value::<KeyStateResponse>(answer)?.to_words()),
    }?;
    Ok(Exit::Done)
}

fn reset(key: &KeyArguments) -> anyhow::Result<Exit> {
    if let Err(exit) = key.remote.gateway.ask(Method::DELETE, &key.target())? {
        return Ok(exit);
    }
    match key.remote.format {
        Format::Json => output::print_json(&json!({"limit": key.name, "reset": true})),
        Format::Human => output::print(&format!("{}: the counters of this key are reset", key.name)),
    }?;
    Ok(Exit::Done)
}

impl KeyArguments {
    fn target(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.values);
        let query = query.finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("/api/v1/limits/{}/state{mark}{query}", path_segment(&self.name))
    }
}

/// `10/minute`
pub(super) fn rate_words(count: NonZeroU32, window: u64) -> String {
    Rate { count, per: Duration::from_secs(window) }.to_string()
}

impl LimitResponse {
    fn rule_words(&self) -> String {
        if let Some(most) = self.concurrent {
            return format!("{most} in flight");
        }
        let rates = self.rates.iter().map(|rate| rate_words(rate.limit, rate.window));
        rates.collect::<Vec<_>>().join("; ")
    }

    fn key_words(&self) -> String {
        if self.key.is_empty() { "one for all".to_owned() } else { self.key.join(", ") }
    }

    fn scope_words(&self) -> String {
        let everywhere = self.everywhere.then_some("every request");
        everywhere.into_iter().chain(self.routes.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }

    /// The settings that are not the default.
    fn more_words(&self) -> String {
        let mut more = Vec::new();
        more.extend(self.shadow.then(|| "shadow".to_owned()));
        more.extend((!self.unless.is_empty()).then(|| format!("unless {}", self.unless.join(" or "))));
        let algorithm = self.algorithm.filter(|algorithm| *algorithm != AlgorithmName::SlidingWindowLog);
        more.extend(algorithm.map(|algorithm| algorithm.as_str().to_owned()));
        more.extend(self.burst.map(|burst| format!("burst {burst}")));
        more.extend(self.cost.filter(|cost| cost.get() > 1).map(|cost| format!("each costs {cost}")));
        more.extend((self.count != Count::Requests).then(|| format!("counts {}", self.count.as_str())));
        more.extend(self.distinct.as_ref().map(|part| format!("counts different {part}")));
        more.extend(self.reset_on.map(|outcome| format!("reset on {}", outcome.as_str())));
        more.join(", ")
    }
}

impl ThenResponse {
    /// `ban 15m, 1h`, `delay 20s, notify ops`
    fn to_words(&self) -> String {
        let settings = serde_json::to_value(self).expect("names and numbers are JSON");
        let words = settings.as_object().into_iter().flatten().filter_map(|(action, how)| match how {
            // The channels come last, whatever the action is called.
            _ if action == "notify" => None,
            Value::String(word) => Some(format!("{action} {word}")),
            Value::Array(words) => {
                Some(format!("{action} {}", words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")))
            }
            Value::Object(own) => Some(own.values().fold(action.clone(), |words, value| match value {
                Value::String(text) => format!("{words} {text}"),
                value => format!("{words} {value}"),
            })),
            _ => Some(action.clone()),
        });
        let notify = (!self.notify.is_empty()).then(|| format!("notify {}", self.notify.join(", ")));
        words.chain(notify).collect::<Vec<_>>().join(", ")
    }
}

impl KeyBanResponse {
    fn to_words(&self) -> String {
        let Self { id, address, until, left, reason } = self;
        let what = address.as_ref().map(|address| format!(" as {address}")).unwrap_or_default();
        let why = if reason.is_empty() { String::new() } else { format!(", {reason}") };
        format!("banned{what} for another {left} s, until {until} (ban {id}{why})")
    }
}

impl KeyStateResponse {
    fn to_words(&self) -> String {
        let key = if self.key.is_empty() { "one key for all".to_owned() } else { self.key.join(", ") };
        let verdict = match &self.ban {
            Some(ban) => ban.to_words(),
            None if self.allowed => "passes".to_owned(),
            None => format!("denied for another {} s", self.retry_after),
        };
        let shadow = if self.shadow { " (shadow: never applied)" } else { "" };
        let mut words = format!("{} by {key}: {verdict}{shadow}", self.limit);
        if !self.rates.is_empty() {
            let mut table = Table::new(["RATE", "REMAINING", "MORE IN"]);
            for RateStateResponse { limit, window, remaining, reset } in &self.rates {
                let more_in = if *reset == 0 { String::new() } else { format!("{reset} s") };
                table.row([rate_words(*limit, *window), remaining.to_string(), more_in]);
            }
            words = format!("{words}\n{table}");
        }
        words
    }
}

// `SELECTOR=VALUE` arguments, and names in the path of a request.

/// Parses `param.username=alice`.
pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as SELECTOR=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `client_ip=198.51.100.7 param.username=alice`
pub(super) fn key_words(key: &BTreeMap<String, String>) -> String {
    if key.is_empty() {
        return "one for all".to_owned();
    }
    let parts: Vec<_> = key.iter().map(|(selector, value)| format!("{selector}={value}")).collect();
    output::plain(&parts.join(" "))
}

/// A name encoded as one segment of a path.
pub(super) fn path_segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            segment.push(char::from(byte));
        } else {
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_path_segment() {
        assert_eq!(path_segment("login-pace_1.~"), "login-pace_1.~");
        assert_eq!(path_segment("a/b ?%ü"), "a%2Fb%20%3F%25%C3%BC");
    }

    #[test]
    fn the_state_of_a_key_is_printed_as_a_table() {
        let state: KeyStateResponse = serde_json::from_value(json!({
            "limit": "pace", "key": ["client_ip"], "allowed": false, "retry_after": 7, "shadow": false, "ban": null,
            "rates": [{"limit": 1, "window": 1, "remaining": 1, "reset": 0}, {"limit": 20, "window": 60, "remaining": 0, "reset": 7}],
        }))
        .unwrap();
        let expected = "\
pace by client_ip: denied for another 7 s
RATE       REMAINING  MORE IN
1/second   1
20/minute  0          7 s";
        assert_eq!(state.to_words(), expected);
    }

    #[test]
    fn a_value_may_contain_an_equals_sign() {
        assert_eq!(parse_pair("query.a=b=c"), Ok(("query.a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_pair("param.a="), Ok(("param.a".to_owned(), String::new())));
        assert!(parse_pair("alice").is_err());
    }
}
