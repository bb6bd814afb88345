//! `portcullis status`: shows how a running gateway is.

use std::fmt::Write;

use serde::Deserialize;

use super::advice::AdviceView;
use super::redraw::ViewArguments;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::output::Table;
use crate::cli::output::thousands;
use crate::units::counted;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis status
  portcullis status --watch
  portcullis status --format json | jq .last_minute

The first line says whether all is well. Gateways that count in the same Redis are named for an hour after they have
gone.
Exit codes: 0 done, 1 the gateway refused the request, 2 usage, 3 the gateway could not be reached.")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    view: ViewArguments,
}

pub(in crate::cli) fn status(Arguments { view }: &Arguments) -> anyhow::Result<Exit> {
    view.show("/api/v1/status", StatusView::to_words)
}

#[derive(Debug, Deserialize)]
struct StatusView {
    version: String,
    since: String,
    gateway: String,
    configuration: ConfigurationView,
    gateways: Vec<GatewayView>,
    complete: bool,
    listeners: Vec<String>,
    certificates: Vec<CertificateView>,
    upstreams: Vec<UpstreamView>,
    lists: Vec<ListView>,
    store: StoreView,
    last_minute: TrafficView,
    advice: Vec<AdviceView>,
}

#[derive(Debug, Deserialize)]
struct ConfigurationView {
    source: String,
    loaded: String,
    last_reload: Option<ReloadView>,
}

#[derive(Debug, Deserialize)]
struct ReloadView {
    at: String,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GatewayView {
    id: String,
    state: String,
    version: String,
    since: String,
    last_seen: String,
    last_minute: TrafficView,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct TrafficView {
    passed: u64,
    denied: u64,
}

#[derive(Debug, Deserialize)]
struct CertificateView {
    names: Vec<String>,
    expires: String,
    ends_soon: bool,
}

#[derive(Debug, Deserialize)]
struct UpstreamView {
    name: String,
    servers: Vec<ServerView>,
}

#[derive(Debug, Deserialize)]
struct ServerView {
    server: String,
    healthy: bool,
}

#[derive(Debug, Deserialize)]
struct ListView {
    list: String,
    source: String,
    up: bool,
    entries: u64,
    answered: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct StoreView {
    kind: String,
    up: bool,
    #[serde(default)]
    on_failure: Option<String>,
    #[serde(default)]
    part: Option<f64>,
    #[serde(default)]
    away: Vec<AwayView>,
}

#[derive(Debug, Deserialize)]
struct AwayView {
    server: String,
    cause: String,
}

impl StatusView {
    fn to_words(&self) -> String {
        let mut text = headline(&self.complaints());
        let mut line = |name: &str, value: &str| _ = write!(text, "\n{name:<14}{}", output::plain(value));
        line("gateway", &format!("{}, portcullis {}, since {}", self.gateway, self.version, self.since));
        line("configuration", &format!("{}, loaded {}", self.configuration.source, self.configuration.loaded));
        if let Some(ReloadView { at, reason }) = &self.configuration.last_reload {
            let result = reason.as_ref().map_or_else(|| "succeeded".to_owned(), |reason| format!("FAILED: {reason}"));
            line("last reload", &format!("{at}, {result}"));
        }
        line("store", &self.store.to_words());
        line("listening on", &self.listeners.join(", "));
        for certificate in &self.certificates {
            line("certificate", &format!("{} until {}", certificate.names(), certificate.expires));
        }
        let TrafficView { passed, denied } = self.last_minute;
        line("last minute", &format!("{} passed, {} denied", thousands(passed), thousands(denied)));
        for UpstreamView { name, servers } in &self.upstreams {
            let servers = servers.iter().map(|ServerView { server, healthy }| {
                format!("{server} {}", if *healthy { "gets requests" } else { "IS NOT WELL" })
            });
            line("upstream", &format!("{name}: {}", servers.collect::<Vec<_>>().join(", ")));
        }
        for list in &self.lists {
            line("list", &list.to_words());
        }
        for AdviceView { message, .. } in &self.advice {
            line("advice", message);
        }
        if self.gateways.len() > 1 {
            text.push_str(&self.table());
        }
        text
    }

    fn table(&self) -> String {
        let mut table = Table::new(["GATEWAY", "STATE", "PASSED", "DENIED", "VERSION", "SINCE", "LAST SEEN"]);
        for gateway in &self.gateways {
            let GatewayView { id, state, version, since, last_seen, last_minute } = gateway;
            table.row([
                output::plain(id),
                output::plain(state),
                thousands(last_minute.passed),
                thousands(last_minute.denied),
                output::plain(version),
                output::plain(since),
                output::plain(last_seen),
            ]);
        }
        format!("\n\n{table}")
    }

    /// What is not well, in a few words each.
    fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if !self.store.up {
            let without =
                self.store.part.filter(|part| *part <= 0.0).map(|_| ", and this gateway holds no part of any limit");
            complaints.push(format!("the store is away{}", without.unwrap_or_default()));
        } else if !self.complete && self.gateways.iter().all(|gateway| gateway.state != "missing") {
            complaints.push("other gateways are not known".to_owned());
        }
        if self.configuration.last_reload.as_ref().is_some_and(|reload| reload.reason.is_some()) {
            complaints.push("the last reload failed".to_owned());
        }
        for UpstreamView { name, servers } in &self.upstreams {
            let unwell = servers.iter().filter(|server| !server.healthy).count();
            if unwell > 0 {
                let name = output::plain(name);
                let verb = if unwell == 1 { "gets" } else { "get" };
                complaints
                    .push(format!("{unwell} of {} of {name} {verb} no requests", counted(servers.len(), "server")));
            }
        }
        let away = self.lists.iter().filter(|list| !list.up);
        complaints.extend(away.map(|list| output::plain(&format!("the source of the list {} is away", list.list))));
        let ending = self.certificates.iter().filter(|certificate| certificate.ends_soon);
        complaints.extend(ending.map(|certificate| {
            output::plain(&format!("the certificate of {} is good until {}", certificate.names(), certificate.expires))
        }));
        let in_state = |state: &'static str| self.gateways.iter().filter(move |gateway| gateway.state == state);
        let advice = self.advice.len();
        complaints.extend((advice > 0).then(|| format!("advice: {advice}, see `portcullis advice`")));
        let missing = in_state("missing").map(|gateway| format!("{} does not answer", output::plain(&gateway.id)));
        complaints.extend(missing);
        complaints.extend(in_state("gone").map(|gateway| format!("{} has gone", output::plain(&gateway.id))));
        complaints
    }
}

impl CertificateView {
    /// The first names, and how many more there are.
    fn names(&self) -> String {
        let (shown, more) = self.names.split_at(self.names.len().min(NAMES_SHOWN));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        format!("{}{more}", shown.join(", "))
    }
}

const NAMES_SHOWN: usize = 3;

impl ListView {
    fn to_words(&self) -> String {
        let Self { list, source, entries, .. } = self;
        let state = match (self.up, &self.answered, &self.reason) {
            (true, ..) => "answers".to_owned(),
            (false, Some(answered), reason) => {
                format!("AWAY since {answered}: {}", reason.as_deref().unwrap_or_default())
            }
            (false, None, Some(reason)) => format!("HAS NOT ANSWERED: {reason}"),
            (false, None, None) => "is asked".to_owned(),
        };
        let noun = if *entries == 1 { "decision" } else { "decisions" };
        format!("{list}: {} {noun} of {source}, which {state}", thousands(*entries))
    }
}

impl StoreView {
    fn to_words(&self) -> String {
        let mut words = format!("{}, {}", self.kind, if self.up { "up" } else { "AWAY" });
        for AwayView { server, cause } in &self.away {
            let _ = write!(words, ", {server} ({cause})");
        }
        if let Some(on_failure) = self.on_failure.as_ref().filter(|_| !self.up) {
            let _ = write!(words, "; meanwhile: {on_failure}");
        }
        if let Some(part) = self.part {
            let _ = write!(words, "; this gateway's part of every limit: {}", thousandths(part));
        }
        words
    }
}

/// `1`, `0.333`, `0.25`.
fn thousandths(fraction: f64) -> String {
    let digits = format!("{fraction:.3}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn headline(complaints: &[String]) -> String {
    if complaints.is_empty() {
        format!("{GREEN}all is well{RESET}")
    } else {
        format!("{RED}{}{RESET}", complaints.join("; "))
    }
}

// Printed only on a terminal.
const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";
const RESET: &str = "\u{1b}[0m";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_line_says_what_is_not_well() {
        let gateway = |id: &str, state: &str| {
            json!({"id": id, "state": state, "version": "1", "since": "then", "last_seen": "now",
                "last_minute": {"passed": 9812, "denied": 3}})
        };
        let mut status = json!({
            "version": "1", "since": "then", "gateway": "one", "complete": true, "listeners": ["127.0.0.1:80"],
            "certificates": [{"names": ["*.a.test", "a.test", "b.test", "c.test"], "expires": "then", "ends_soon": false}],
            "configuration": {"source": "portcullis.yaml", "loaded": "then", "last_reload": null},
            "gateways": [gateway("one", "up"), gateway("two", "ended")],
            "upstreams": [{"name": "app", "servers": [{"server": "10.0.0.1:80", "healthy": true}]}],
            "store": {"kind": "redis", "up": true, "on_failure": "local"}, "last_minute": {"passed": 9812, "denied": 3}, "advice": [],
            "lists": [{"list": "community", "source": "http://127.0.0.1:8080", "up": true, "entries": 1200, "answered": "now"}],
        });
        let words =
            |status: &serde_json::Value| serde_json::from_value::<StatusView>(status.clone()).unwrap().to_words();
        let well = words(&status);
        assert!(well.starts_with("\u{1b}[32mall is well\u{1b}[0m\ngateway       one, "), "{well}");
        assert!(well.contains("\ncertificate   *.a.test, a.test, b.test and 1 more until then\n"), "{well}");
        assert!(well.contains("\nlast minute   9,812 passed, 3 denied\n"), "{well}");
        status["store"] = json!({"kind": "redis", "up": false, "on_failure": "local", "away": [{"server": "a:1", "cause": "timeout"}]});
        status["upstreams"][0]["servers"][0]["healthy"] = json!(false);
        status["gateways"][1]["state"] = json!("missing");
        let silent = words(&status);
        assert!(silent.contains("; two does not answer"), "{silent}");
        status["gateways"][1]["state"] = json!("gone");
        status["certificates"][0] = json!({"names": ["a.test"], "expires": "soon", "ends_soon": true});
        status["configuration"]["last_reload"] = json!({"at": "now", "result": "failure", "reason": "1 mistake"});
        let unwell = words(&status);
        assert!(
            unwell.starts_with(
                "\u{1b}[31mthe store is away; the last reload failed; 1 of 1 server of app gets no requests; \
             the certificate of a.test is good until soon; two has gone\u{1b}[0m\n"
            ),
            "{unwell}"
        );
        assert!(unwell.contains("redis, AWAY, a:1 (timeout); meanwhile: local"), "{unwell}");
    }
}
