//! `portcullis status`: shows how a running gateway is; `portcullis advice`: what it finds misconfigured.

use std::fmt::Write;

use crate::api::{
    Advice, AwayServer, Configuration, Fault, FollowedList, Gateway, Level, Reload, Server, Status, Store, Traffic,
    Upstream, Verdict,
};
use crate::cli::output;
use crate::cli::output::Table;
use crate::cli::program::Exit;
use crate::cli::remote::top::ViewArguments;
use crate::words::units::{counted, thousands};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis status
  portcullis status --watch
  portcullis status --format json | jq .last_minute

The first line is the verdict, the same as on the dashboard: whether all is well, and if not what is in trouble, and what is
attacked. Gateways that count in the same Redis are named for an hour after they have
gone.
Exit codes: 0 done, 1 the gateway refused the request, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    view: ViewArguments,
}

pub(in crate::cli) fn status(Arguments { view }: &Arguments) -> anyhow::Result<Exit> {
    view.show("/api/v1/status", words)
}

fn words(status: &Status) -> String {
    let mut text = headline(&status.verdict);
    let mut line = |name: &str, value: &str| _ = write!(text, "\n{name:<14}{}", output::plain(value));
    line("gateway", &format!("{}, portcullis {}, since {}", status.gateway, status.version, status.since));
    let Configuration { source, loaded, waiting, .. } = &status.configuration;
    let but = if waiting.is_empty() { String::new() } else { format!("; {}", status.configuration.shown_waiting()) };
    line("configuration", &format!("{source}, loaded {loaded}{but}"));
    if let Some(Reload { at, reason, .. }) = &status.configuration.last_reload {
        let result = reason.as_ref().map_or_else(|| "succeeded".to_owned(), |reason| format!("FAILED: {reason}"));
        line("last reload", &format!("{at}, {result}"));
    }
    line("store", &store(&status.store));
    line("listening on", &status.listeners.join(", "));
    for certificate in &status.certificates {
        line("certificate", &format!("{} until {}", certificate.shown_names(), certificate.expires));
    }
    line("last minute", &traffic(status.last_minute));
    for Upstream { name, servers } in &status.upstreams {
        let servers = servers.iter().map(|Server { server, healthy }| {
            format!("{server} {}", if *healthy { "gets requests" } else { "IS NOT WELL" })
        });
        line("upstream", &format!("{name}: {}", servers.collect::<Vec<_>>().join(", ")));
    }
    for followed in &status.lists {
        line("list", &list(followed));
    }
    for Fault { sentence, since, .. } in &status.faults {
        line("fault", &format!("{sentence} Since {since}"));
    }
    for Advice { message, .. } in &status.advice {
        line("advice", message);
    }
    if status.gateways.len() > 1 {
        text.push_str(&table(&status.gateways));
    }
    text
}

/// The sentence of the verdict, as the dashboard shows it.
fn headline(verdict: &Verdict) -> String {
    let colour = match verdict.level {
        Level::Well => GREEN,
        Level::Notice => YELLOW,
        Level::Attack | Level::Trouble => RED,
    };
    format!("{colour}{}{RESET}", output::plain(&verdict.sentence))
}

fn traffic(Traffic { passed, denied, errors, signed_in, failed }: Traffic) -> String {
    let mut requests = format!("{} passed, {} denied", thousands(passed), thousands(denied));
    if errors > 0 {
        let _ = write!(requests, ", {}", counted(errors, "error"));
    }
    if signed_in + failed == 0 {
        return requests;
    }
    format!("{requests}; {} signed in, {} failed to", thousands(signed_in), thousands(failed))
}

fn table(gateways: &[Gateway]) -> String {
    let mut table = Table::new(["GATEWAY", "STATE", "PASSED", "DENIED", "VERSION", "SINCE", "LAST SEEN"]);
    for gateway in gateways {
        let Gateway { state, version, since, last_seen, last_minute, .. } = gateway;
        table.row([
            output::plain(&gateway.shown_among(gateways)),
            state.as_str().to_owned(),
            thousands(last_minute.passed),
            thousands(last_minute.denied),
            output::plain(version),
            output::plain(since),
            output::plain(last_seen),
        ]);
    }
    format!("\n\n{table}")
}

fn list(FollowedList { list, source, up, entries, answered, reason }: &FollowedList) -> String {
    let state = match (up, answered, reason) {
        (true, ..) => "answers".to_owned(),
        (false, Some(answered), reason) => format!("AWAY since {answered}: {}", reason.as_deref().unwrap_or_default()),
        (false, None, Some(reason)) => format!("HAS NOT ANSWERED: {reason}"),
        (false, None, None) => "is asked".to_owned(),
    };
    format!("{list}: {} of {source}, which {state}", counted(*entries, "decision"))
}

fn store(store: &Store) -> String {
    let mut words = format!("{}, {}", store.kind, if store.up { "up" } else { "AWAY" });
    for AwayServer { server, cause } in &store.away {
        let _ = write!(words, ", {server} ({cause})");
    }
    if let Some(rule) = store.shown_rule().filter(|_| !store.up) {
        let _ = write!(words, "; meanwhile: {rule}");
    }
    if let Some(part) = store.part {
        let _ = write!(words, "; this gateway's part of every limit: {}", thousandths(part));
    }
    words
}

/// `1`, `0.333`, `0.25`.
fn thousandths(fraction: f64) -> String {
    let digits = format!("{fraction:.3}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

// Printed only on a terminal.
const GREEN: &str = "\u{1b}[32m";

const YELLOW: &str = "\u{1b}[33m";

const RED: &str = "\u{1b}[31m";

const RESET: &str = "\u{1b}[0m";

// `portcullis advice`: prints what a running gateway finds misconfigured.

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis advice
  portcullis advice --format json | jq -r '.[].message'

What looks wrong in the last thousand requests, and what `portcullis check` warns of, each with the line to write.
Exit codes: 0 done, 1 the gateway refused the request, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct AdviceArguments {
    #[command(flatten)]
    view: ViewArguments,
}

pub(in crate::cli) fn advice(AdviceArguments { view }: &AdviceArguments) -> anyhow::Result<Exit> {
    view.show("/api/v1/advice", |advice: &Vec<Advice>| advice_words(advice))
}

fn advice_words(advice: &[Advice]) -> String {
    if advice.is_empty() {
        return "nothing looks wrong".to_owned();
    }
    let words = advice.iter().map(|Advice { message, since, help, .. }| {
        format!("{}\n  since {}\n  {}", output::plain(message), output::plain(since), output::plain(help))
    });
    words.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_first_line_is_the_verdict_and_the_others_are_facts() {
        let traffic = json!({"passed": 9812, "denied": 3, "signed_in": 0, "failed": 0});
        let gateway = |id: &str, state: &str| json!({"name": id, "id": format!("{id}-3f2a90c4"), "state": state, "version": "1", "since": "then", "last_seen": "now", "last_minute": traffic});
        let mut status = json!({
            "verdict": {"level": "well", "sentence": "All is well.", "parts": []},
            "version": "1", "since": "then", "gateway": "one", "complete": true, "listeners": ["127.0.0.1:80"],
            "certificates": [{"names": ["*.a.test", "a.test", "b.test", "c.test"], "expires": "then", "ends_soon": false}],
            "configuration": {"source": "portcullis.yaml", "loaded": "then", "last_reload": null},
            "gateways": [gateway("one", "up"), gateway("two", "up"), gateway("two", "ended")],
            "upstreams": [{"name": "app", "servers": [{"server": "10.0.0.1:80", "healthy": true}]}],
            "store": {"kind": "redis", "up": true, "on_failure": "local"}, "last_minute": traffic, "advice": [],
            "lists": [{"list": "community", "source": "http://127.0.0.1:8080", "up": true, "entries": 1200, "answered": "now"}],
        });
        let shown = |status: &Value| words(&serde_json::from_value(status.clone()).unwrap());
        let well = shown(&status);
        assert!(well.starts_with("\u{1b}[32mAll is well.\u{1b}[0m\ngateway       one, "), "{well}");
        assert!(well.contains("\ncertificate   *.a.test, a.test, b.test and 1 more until then\n"), "{well}");
        assert!(well.contains("\nlast minute   9,812 passed, 3 denied\n"), "{well}");
        let first_words: Vec<_> = well.lines().skip_while(|line| !line.starts_with("GATEWAY")).skip(1).collect();
        assert!(first_words[0].starts_with("one  ") && first_words[1].starts_with("two (two-3f2a90c4)  "), "{well}");
        status["verdict"] = json!({"level": "trouble", "sentence": "Redis does not answer.\u{1b}", "parts": []});
        let in_outage = json!([{"on_failure": "local", "limits": ["a"]}, {"on_failure": "deny", "limits": ["b", "c"]}]);
        status["store"] = json!({"kind": "redis", "up": false, "on_failure": "local", "in_outage": in_outage, "away": [{"server": "a:1", "cause": "timeout"}]});
        status["last_minute"]["failed"] = json!(45);
        status["last_minute"]["errors"] = json!(1);
        let unwell = shown(&status);
        assert!(unwell.starts_with("\u{1b}[31mRedis does not answer.\u{1b}[0m\n"), "{unwell}");
        assert!(unwell.contains("redis, AWAY, a:1 (timeout); meanwhile: local for a; deny for b, c\n"), "{unwell}");
        assert!(
            unwell.contains("\nlast minute   9,812 passed, 3 denied, 1 error; 0 signed in, 45 failed to\n"),
            "{unwell}"
        );
        status["verdict"]["level"] = json!("notice");
        status["configuration"]["waiting"] = json!(["store.redis.url"]);
        let waits = shown(&status);
        assert!(waits.starts_with("\u{1b}[33m"), "{waits}");
        assert!(waits.contains("portcullis.yaml, loaded then; store.redis.url waits for the next start\n"), "{waits}");
    }
    #[test]
    fn advice_is_printed_with_what_to_write() {
        let one = Advice {
            kind: "missing_field".into(),
            message: "half lack it\u{1b}".into(),
            since: "then".into(),
            limit: None,
            route: None,
            help: "write this".into(),
        };
        assert_eq!(advice_words(&[one]), "half lack it\n  since then\n  write this");
        assert_eq!(advice_words(&[]), "nothing looks wrong");
    }
}
