//! `portcullis top`: shows who asks most.

use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use http::Method;
use serde::de::DeserializeOwned;

use crate::api::events::{Attack, AttackNetwork, AttackedAccount, BusyKeyResponse};
use crate::cli::output;
use crate::cli::output::Table;
use crate::cli::program::{Exit, Format};
use crate::cli::remote::client::TIMEOUT;
use crate::cli::remote::gateway::{RemoteArguments, read_response};
use crate::cli::remote::limits::key_words;
use crate::words::units::counted;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis top
  portcullis top login-pace --minutes 60
  portcullis top --by requests -n 5 --watch

Without LIMIT it shows clients: their requests, and every denial by a limit, a ban or a list.

Exit codes: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    /// The limit whose keys are shown
    #[arg(value_name = "LIMIT")]
    limit: Option<String>,
    /// What the order goes by
    #[arg(long, value_enum, default_value_t = By::Denied)]
    by: By,
    /// How many are shown
    #[arg(short, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    n: u16,
    /// What happened in so many minutes is counted
    #[arg(long, value_name = "MINUTES", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1440))]
    minutes: u16,
    #[command(flatten)]
    view: ViewArguments,
}

/// What the order goes by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum By {
    Denied,
    Requests,
    Failures,
}

pub(in crate::cli) fn top(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.view.show(&arguments.target(), |busiest: &Vec<BusyKeyResponse>| arguments.words(busiest))
}

impl Arguments {
    fn target(&self) -> String {
        let by = match self.by {
            By::Denied => "denied",
            By::Requests => "requests",
            By::Failures => "failures",
        };
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.limit.as_ref().map(|limit| ("limit", limit)));
        query.append_pair("by", by).append_pair("n", &self.n.to_string());
        query.append_pair("minutes", &self.minutes.to_string());
        format!("/api/v1/top?{}", query.finish())
    }

    fn words(&self, busiest: &[BusyKeyResponse]) -> String {
        if busiest.is_empty() {
            let what = match self.by {
                By::Denied => "nothing was denied",
                By::Requests => "nobody asked",
                By::Failures => "nothing failed",
            };
            return format!("{what} in {}", counted(self.minutes, "minute"));
        }
        let who = if self.limit.is_some() { "KEY" } else { "CLIENT" };
        let mut table = Table::new([who, "DENIED", "FAILED", "REQUESTS", "FIRST", "LAST"]);
        for BusyKeyResponse { key, requests, denied, failed, first, last } in busiest {
            let shown = match (self.limit.is_some(), key.get("client_ip")) {
                (false, Some(address)) => output::plain(address),
                _ => key_words(key),
            };
            let counts = [denied, failed, requests].map(ToString::to_string);
            let [denied, failed, requests] = counts;
            table.row([shown, denied, failed, requests, first.clone(), last.clone()]);
        }
        table.to_string()
    }
}

// What is attacked.

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis attacks
  portcullis attacks --minutes 10 --watch
  portcullis attacks --format json | jq -r '.[0].ban'

Requests that belong together, of all gateways, the newest first: whom they concern, where they come from, and the ban that
would end them.

Exit codes: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct AttacksArguments {
    /// What happened in so many minutes is shown
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=1440))]
    minutes: u16,
    #[command(flatten)]
    view: ViewArguments,
}

pub(in crate::cli) fn attacks(arguments: &AttacksArguments) -> anyhow::Result<Exit> {
    let target = format!("/api/v1/attacks?minutes={}", arguments.minutes);
    arguments.view.show(&target, |attacks: &Vec<Attack>| {
        if attacks.is_empty() {
            return format!("nothing was attacked in {}", counted(arguments.minutes, "minute"));
        }
        attacks.iter().map(attack_words).collect::<Vec<_>>().join("\n\n")
    })
}

/// How many networks, agents and accounts a line names.
const SHOWN: usize = 5;

fn attack_words(attack: &Attack) -> String {
    let state = if attack.over { "over" } else { "under way" };
    let limit = attack.limit.as_ref().map(|limit| format!(", limit {limit}")).unwrap_or_default();
    let mut lines = vec![
        format!("{}  {}, {state}", attack.id, attack.kind),
        format!("  {}", attack.sentence),
        format!("  since {}, last {}{limit}", attack.since, attack.last),
    ];
    let mut list = |what: &str, all: Vec<String>| {
        let more = all.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if !all.is_empty() {
            lines.push(format!("  {what} {}{more}", all[..all.len().min(SHOWN)].join(", ")));
        }
    };
    let network = |it: &AttackNetwork| {
        format!("{} ({}, {})", it.network, counted(it.clients, "client"), counted(it.requests, "request"))
    };
    list("from", attack.networks.iter().map(network).collect());
    list("for", attack.names.iter().map(account_words).collect());
    list("agents", attack.agents.iter().map(|it| format!("\"{}\" ({})", it.agent, it.requests)).collect());
    if attack.others_denied > 0 {
        lines.push(format!("  also denied: {} that signed in before", counted(attack.others_denied, "client")));
    }
    if let Some(ban) = &attack.ban {
        let hit = match attack.would_hit {
            0 => "it meets no client that signed in lately".to_owned(),
            hit => format!("it also meets {} that signed in lately", counted(hit, "client")),
        };
        lines.push(format!("  to end it ({hit}):"));
        lines.push(format!("  {ban}"));
    }
    lines.iter().map(|line| output::plain(line)).collect::<Vec<_>>().join("\n")
}

fn account_words(it: &AttackedAccount) -> String {
    let signed_in = if it.signed_in > 0 { format!(", {} signed in", it.signed_in) } else { String::new() };
    format!("{} ({} failed{signed_in})", it.account, it.failed)
}

// Shows an answer of the gateway once, or again and again.

const INTERVAL: Duration = Duration::from_secs(2);

/// The arguments of a command that shows one answer of the gateway.
#[derive(Debug, clap::Args)]
pub(super) struct ViewArguments {
    /// Draw it again every two seconds
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

impl ViewArguments {
    /// Asks for `target`, and prints the answer as JSON or in words. With `--watch` again every two seconds, until the
    /// gateway does not answer, or the reader or the user ends it.
    pub(super) fn show<T: DeserializeOwned>(&self, target: &str, words: impl Fn(&T) -> String) -> anyhow::Result<Exit> {
        loop {
            let (client, response) = match self.remote.gateway.answer(Method::GET, target, None, TIMEOUT)? {
                Ok(answered) => answered,
                Err(exit) => return Ok(exit),
            };
            let answer = match read_response(&client, &response) {
                Ok(answer) => answer,
                Err(exit) => return Ok(exit),
            };
            let text = match self.remote.format {
                Format::Json => serde_json::to_string_pretty(&answer)?,
                Format::Human => with_missing(words(&serde_json::from_value(answer)?), response.missing.as_deref()),
            };
            if !self.watch {
                output::print(&text)?;
                return Ok(Exit::Done);
            }
            if output::redraw(&text)?.is_break() {
                return Ok(Exit::Done);
            }
            thread::sleep(INTERVAL);
        }
    }
}

/// Says which gateways did not answer the one that was asked.
fn with_missing(words: String, missing: Option<&str>) -> String {
    let Some(missing) = missing else { return words };
    let verb = if missing.contains(',') { "do" } else { "does" };
    format!("{words}\n\nwithout {}, which {verb} not answer", output::plain(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_that_did_not_answer_are_named_below() {
        assert_eq!(with_missing("x".to_owned(), None), "x");
        assert_eq!(with_missing("x".to_owned(), Some("a")), "x\n\nwithout a, which does not answer");
        assert_eq!(with_missing("x".to_owned(), Some("a, b")), "x\n\nwithout a, b, which do not answer");
    }

    #[test]
    fn the_busiest_are_a_table() {
        let busiest = |key: &[(&str, &str)]| BusyKeyResponse {
            key: key.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            requests: 12,
            denied: 7,
            failed: 2,
            first: "a".to_owned(),
            last: "b".to_owned(),
        };
        let command = |limit: Option<&str>| {
            let arguments = ["top", "--by", "requests", "-n", "3"].into_iter().chain(limit);
            let command = <Arguments as clap::Args>::augment_args(clap::Command::new("top"));
            <Arguments as clap::FromArgMatches>::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
        };
        assert_eq!(command(Some("a b")).target(), "/api/v1/top?limit=a+b&by=requests&n=3&minutes=10");
        assert_eq!(
            command(None).words(&[busiest(&[("client_ip", "198.51.100.7")])]),
            "CLIENT        DENIED  FAILED  REQUESTS  FIRST  LAST\n198.51.100.7  7       2       12        a      b"
        );
        assert!(command(Some("x")).words(&[busiest(&[])]).ends_with("one for all  7       2       12        a      b"));
        assert_eq!(command(None).words(&[]), "nobody asked in 10 minutes");
    }
}
