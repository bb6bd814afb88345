//! `portcullis top`: shows who asks most.

use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use http::Method;
use serde::de::DeserializeOwned;

use crate::api::events::BusyKeyResponse;
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
}

pub(in crate::cli) fn top(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.view.show(&arguments.target(), |busiest: &Vec<BusyKeyResponse>| arguments.words(busiest))
}

impl Arguments {
    fn target(&self) -> String {
        let by = match self.by {
            By::Denied => "denied",
            By::Requests => "requests",
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
            };
            return format!("{what} in {}", counted(self.minutes, "minute"));
        }
        let who = if self.limit.is_some() { "KEY" } else { "CLIENT" };
        let mut table = Table::new([who, "DENIED", "REQUESTS", "FIRST", "LAST"]);
        for BusyKeyResponse { key, requests, denied, first, last } in busiest {
            let shown = match (self.limit.is_some(), key.get("client_ip")) {
                (false, Some(address)) => output::plain(address),
                _ => key_words(key),
            };
            table.row([shown, denied.to_string(), requests.to_string(), first.clone(), last.clone()]);
        }
        table.to_string()
    }
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
            "CLIENT        DENIED  REQUESTS  FIRST  LAST\n198.51.100.7  7       12        a      b"
        );
        assert!(command(Some("x")).words(&[busiest(&[])]).ends_with("one for all  7       12        a      b"));
        assert_eq!(command(None).words(&[]), "nobody asked in 10 minutes");
    }
}
