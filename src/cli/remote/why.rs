//! `portcullis why`: tells why a request was denied or held.

use std::num::NonZeroU32;

use http::Method;

use super::gateway::RemoteArguments;
use crate::cli::output;
use crate::cli::output::Table;
use crate::cli::program::{Exit, Format};
use crate::cli::remote::limits::{key_words, path_segment, rate_words};
use crate::record::kept_requests::{LimitStory, RequestStory};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis why 4bf92f3577b34da6a3ce929d0e0e4736
  portcullis why 4bf92f3577b34da6a3ce929d0e0e4736 --format json | jq -r .sentence

The id stands on the page of a denial, in `request_id` of its problem document, in X-Request-ID of every answer and in
the log.
Known are the newest 10,000 requests at least that were denied, delayed, challenged or banned.

Exit codes: 0 done, 1 no such request was denied or held, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    /// The id of the request
    #[arg(value_name = "REQUEST-ID")]
    id: String,
    #[command(flatten)]
    remote: RemoteArguments,
}

pub(in crate::cli) fn why(Arguments { id, remote }: &Arguments) -> anyhow::Result<Exit> {
    let target = format!("/api/v1/requests/{}", path_segment(id.trim()));
    let answer = match remote.gateway.ask(Method::GET, &target)? {
        Ok(answer) => answer,
        Err(exit) => return Ok(exit),
    };
    match remote.format {
        Format::Json => output::print_json(&answer),
        Format::Human => output::print(&words(&serde_json::from_value(answer)?)),
    }?;
    Ok(Exit::Done)
}

fn words(story: &RequestStory) -> String {
    let RequestStory { id, time, client, peer, method, host, path, .. } = story;
    let from = if client == peer { client.clone() } else { format!("{client} (through {peer})") };
    let mut facts = vec![
        ("id", id.clone()),
        ("time", time.clone()),
        ("client", from),
        ("request", format!("{method} {host}{path}")),
        ("route", story.route.clone().unwrap_or_else(|| "none".to_owned())),
        ("status", story.status.map_or("none: the client left".to_owned(), |status| status.to_string())),
    ];
    facts.extend(story.ban.iter().map(|ban| ("ban", ban.clone())));
    facts.extend(story.list.iter().map(|list| ("list", list.clone())));
    let facts = facts.iter().map(|(name, value)| format!("{name:<8} {}", output::plain(value)));
    let mut words =
        format!("{BOLD}{}{RESET}\n\n{}", output::plain(&story.sentence), facts.collect::<Vec<_>>().join("\n"));
    if !story.limits.is_empty() {
        let mut table = Table::new(["LIMIT", "DECISION", "KEY", "RATE", "COUNTED", "MORE AT"]);
        for limit in &story.limits {
            for row in rows(limit) {
                table.row(row);
            }
        }
        words = format!("{words}\n\n{table}");
    }
    words
}

/// A row for each rate, or one without.
fn rows(limit: &LimitStory) -> Vec<[String; 6]> {
    let key = limit.key.as_ref().map_or("incomplete".to_owned(), key_words);
    let mut rows: Vec<_> = limit
        .rates
        .iter()
        .map(|rate| {
            let written = NonZeroU32::new(rate.limit).map(|count| rate_words(count, rate.window)).unwrap_or_default();
            let frees_at = rate.frees_at.clone().unwrap_or_default();
            [String::new(), String::new(), String::new(), written, rate.counted.to_string(), frees_at]
        })
        .collect();
    if rows.is_empty() {
        rows.push(Default::default());
    }
    let [name, decision, shown, ..] = &mut rows[0];
    (*name, *decision, *shown) = (limit.name.clone(), limit.decision.clone(), key);
    rows
}

const BOLD: &str = "\u{1b}[1m";

const RESET: &str = "\u{1b}[0m";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_story_is_a_sentence_and_its_facts() {
        let story = serde_json::from_value(json!({
            "id": "01J", "time": "2026-03-01T14:02:11.000Z", "decision": "denied", "client": "198.51.100.7", "peer": "10.0.0.1",
            "method": "POST", "host": "example.com", "path": "/login\u{1b}[31m", "route": "login", "status": 429,
            "ban": null, "list": null, "sentence": "Denied.",
            "limits": [
                {"name": "pace", "key": {"client_ip": "198.51.100.7"}, "decision": "denied", "rates": [
                    {"limit": 5, "window": 60, "counted": 5, "frees_at": "2026-03-01T14:02:48.000Z"},
                    {"limit": 20, "window": 3600, "counted": 5, "frees_at": null},
                ]},
                {"name": "wide", "key": {}, "decision": "allowed", "rates": []},
            ],
        }))
        .unwrap();
        let expected = "\
\u{1b}[1mDenied.\u{1b}[0m

id       01J
time     2026-03-01T14:02:11.000Z
client   198.51.100.7 (through 10.0.0.1)
request  POST example.com/login[31m
route    login
status   429

LIMIT  DECISION  KEY                     RATE      COUNTED  MORE AT
pace   denied    client_ip=198.51.100.7  5/minute  5        2026-03-01T14:02:48.000Z
                                         20/hour   5
wide   allowed   one for all";
        assert_eq!(words(&story), expected);
    }
}
