//! `portcullis top`: shows who asks most.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Deserialize;

use super::redraw::ViewArguments;
use super::selector_value::key_words;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::output::Table;
use crate::units::counted;

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
    arguments.view.show(&arguments.target(), |busiest: &Vec<BusyKey>| arguments.words(busiest))
}

#[derive(Debug, Deserialize)]
struct BusyKey {
    key: BTreeMap<String, String>,
    requests: u64,
    denied: u64,
    first: String,
    last: String,
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

    fn words(&self, busiest: &[BusyKey]) -> String {
        if busiest.is_empty() {
            let what = match self.by {
                By::Denied => "nothing was denied",
                By::Requests => "nobody asked",
            };
            return format!("{what} in {}", counted(self.minutes, "minute"));
        }
        let who = if self.limit.is_some() { "KEY" } else { "CLIENT" };
        let mut table = Table::new([who, "DENIED", "REQUESTS", "FIRST", "LAST"]);
        for BusyKey { key, requests, denied, first, last } in busiest {
            let shown = match (self.limit.is_some(), key.get("client_ip")) {
                (false, Some(address)) => output::plain(address),
                _ => key_words(key),
            };
            table.row([shown, denied.to_string(), requests.to_string(), first.clone(), last.clone()]);
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_are_a_table() {
        let busiest = |key: &[(&str, &str)]| BusyKey {
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
