//! `portcullis limits`: lists the limits of a running gateway, and shows or resets one key.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::Subcommand;
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::gateway::RemoteArguments;
use super::selector_value::parse_pair;
use super::selector_value::path_segment;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::output::Table;
use crate::limit::Rate;

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
            let limits: Vec<LimitView> = serde_json::from_value(answer)?;
            let mut table = Table::new(["NAME", "RULE", "KEY", "WHERE", "THEN", "MORE"]);
            for limit in &limits {
                table.row([
                    limit.name.clone(),
                    limit.rule(),
                    limit.key(),
                    limit.scope(),
                    limit.then.to_words(),
                    limit.more(),
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
        Format::Human => output::print(&serde_json::from_value::<KeyState>(answer)?.to_words()),
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

/// The fields of a limit that are printed.
#[derive(Debug, Deserialize)]
struct LimitView {
    name: String,
    key: Vec<String>,
    rates: Vec<RateView>,
    concurrent: Option<NonZeroU32>,
    algorithm: Option<String>,
    burst: Option<NonZeroU32>,
    cost: Option<NonZeroU32>,
    count: String,
    #[serde(default)]
    distinct: Option<String>,
    #[serde(default)]
    reset_on: Option<String>,
    then: ThenView,
    shadow: bool,
    unless: Vec<String>,
    everywhere: bool,
    routes: Vec<String>,
}

/// What happens when the limit is reached: one action, and the channels that are notified.
#[derive(Debug, Deserialize)]
struct ThenView {
    #[serde(flatten)]
    action: BTreeMap<String, Value>,
    notify: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct RateView {
    limit: NonZeroU32,
    window: u64,
    #[serde(default)]
    remaining: u64,
    #[serde(default)]
    reset: u64,
}

#[derive(Debug, Deserialize)]
struct KeyState {
    limit: String,
    key: Vec<String>,
    allowed: bool,
    retry_after: u64,
    shadow: bool,
    ban: Option<KeyBan>,
    rates: Vec<RateView>,
}

/// The ban of a key, or of the address in it.
#[derive(Debug, Deserialize)]
struct KeyBan {
    id: String,
    address: Option<String>,
    until: String,
    left: u64,
    reason: String,
}

impl RateView {
    /// `10/minute`
    fn rate(self) -> String {
        Rate { count: self.limit, per: Duration::from_secs(self.window) }.to_string()
    }
}

impl LimitView {
    fn rule(&self) -> String {
        match self.concurrent {
            Some(most) => format!("{most} in flight"),
            None => self.rates.iter().map(|rate| rate.rate()).collect::<Vec<_>>().join("; "),
        }
    }

    fn key(&self) -> String {
        if self.key.is_empty() { "one for all".to_owned() } else { self.key.join(", ") }
    }

    fn scope(&self) -> String {
        let everywhere = self.everywhere.then_some("every request");
        everywhere.into_iter().chain(self.routes.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }

    /// The settings that are not the default.
    fn more(&self) -> String {
        let mut more = Vec::new();
        more.extend(self.shadow.then(|| "shadow".to_owned()));
        more.extend((!self.unless.is_empty()).then(|| format!("unless {}", self.unless.join(" or "))));
        more.extend(self.algorithm.clone().filter(|algorithm| algorithm != "sliding-window-log"));
        more.extend(self.burst.map(|burst| format!("burst {burst}")));
        more.extend(self.cost.filter(|cost| cost.get() > 1).map(|cost| format!("each costs {cost}")));
        more.extend((self.count != "requests").then(|| format!("counts {}", self.count)));
        more.extend(self.distinct.as_ref().map(|part| format!("counts different {part}")));
        more.extend(self.reset_on.as_ref().map(|outcome| format!("reset on {outcome}")));
        more.join(", ")
    }
}

impl ThenView {
    /// `ban 15m, 1h`, `delay 20s, notify ops`
    fn to_words(&self) -> String {
        let action = self.action.iter().map(|(action, how)| match how {
            Value::String(word) => format!("{action} {word}"),
            Value::Array(words) => {
                format!("{action} {}", words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
            }
            Value::Object(own) => own.iter().fold(action.clone(), |words, (_, value)| match value {
                Value::String(text) => format!("{words} {text}"),
                value => format!("{words} {value}"),
            }),
            _ => action.clone(),
        });
        let notify = (!self.notify.is_empty()).then(|| format!("notify {}", self.notify.join(", ")));
        action.chain(notify).collect::<Vec<_>>().join(", ")
    }
}

impl KeyBan {
    fn to_words(&self) -> String {
        let Self { id, address, until, left, reason } = self;
        let what = address.as_ref().map(|address| format!(" as {address}")).unwrap_or_default();
        let why = if reason.is_empty() { String::new() } else { format!(", {reason}") };
        format!("banned{what} for another {left} s, until {until} (ban {id}{why})")
    }
}

impl KeyState {
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
            for rate in &self.rates {
                let more_in = if rate.reset == 0 { String::new() } else { format!("{} s", rate.reset) };
                table.row([rate.rate(), rate.remaining.to_string(), more_in]);
            }
            words = format!("{words}\n{table}");
        }
        words
    }
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
        let state: KeyState = serde_json::from_value(json!({
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
