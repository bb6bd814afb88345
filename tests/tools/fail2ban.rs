//! The filter for fail2ban in `config/fail2ban`, on the log of a real gateway: no request can name another client.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::{Gateway, Origin, eventually};
use crate::tool::run;

const FILTER: &str = "config/fail2ban/filter.d/portcullis.conf";

/// The addresses that fail2ban finds in a log, one for each line that counts, sorted.
fn found(log: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("requests.jsonl"), log).expect("a file");
    let filter = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILTER);
    let said = run(folder.path(), "fail2ban-regex", &["-o", "ip", "requests.jsonl", filter.to_str().expect("a path")]);
    assert_eq!(said.errors, "", "{}", said.text);
    let mut found: Vec<String> = said.text.lines().map(str::to_owned).collect();
    found.sort();
    found
}

/// Sends one request from that address, with bytes that may not be text.
fn ask(gateway: &Gateway, source: &str, path: &str, agent: &[u8]) {
    let mut request = gateway.get(path).from(source).bytes();
    let end = request.len() - b"\r\n".len();
    request.splice(end.., [b"User-Agent: ", agent, b"\r\n\r\n"].concat());
    let mut client = gateway.get(path).from(source).connect();
    client.send(&request);
    client.response();
}

#[test]
fn clients_that_are_turned_away_are_found_and_nobody_else() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlog: {{format: json, query: true}}\nroutes:\n  - name: login\n    match: /login/*\n    \
         limits: [{{name: pace, key: client_ip, rate: 1/hour}}]\n",
        origin.url()
    ));
    let imitations: [&[u8]; 5] = [
        br#"x","decision":"denied","client":"192.0.2.1","#,
        br#"x\","decision":"denied","client":"192.0.2.1"#,
        br#"\\","route":"login","decision":"denied","limit":"pace"}"#,
        b"\xff\"},{\"time\":\"2026-11-21T07:58:52.123Z\",\"request_id\":\"a\",\"trace_id\":null,\"client\":\"192.0.2.1\",\"decision\":\"denied\",",
        br"ends with a backslash\",
    ];
    let mut asked = 0;
    for (number, agent) in imitations.iter().enumerate() {
        let (denied, passed) = (format!("127.0.1.{number}"), format!("127.0.2.{number}"));
        let target = "/login/%22,%22decision%22:%22denied%22?\"client\":\"192.0.2.1\"";
        ask(&gateway, &denied, target, agent);
        ask(&gateway, &denied, target, agent);
        ask(&gateway, &passed, "/other?\",\"decision\":\"denied\",\"client\":\"192.0.2.1\",\"", agent);
        asked += 3;
    }
    eventually("all requests are logged", || gateway.stdout().len() == asked);
    // fail2ban waits for the end of a line.
    let log = gateway.stdout().join("\n") + "\n";
    assert_eq!(log.matches("\"decision\":\"denied\",\"limit\":\"pace\"").count(), imitations.len(), "{log}");
    let expected: Vec<String> = (0..imitations.len()).map(|number| format!("127.0.1.{number}")).collect();
    assert_eq!(found(&log), expected, "{log}");
}

#[test]
fn addresses_of_both_families_are_found_for_each_decision_that_turns_away() {
    let mut log = String::new();
    for (number, decision) in
        ["denied", "banned", "tarpitted", "challenged", "allowed", "listed", "delayed", "error"].iter().enumerate()
    {
        for client in [format!("198.51.100.{number}"), format!("2001:db8::a{number}")] {
            let _ = writeln!(
                log,
                "{{\"time\":\"2026-11-21T07:58:52.123Z\",\"request_id\":\"0{number}\",\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\
                 \"client\":\"{client}\",\"peer\":\"192.0.2.1\",\"path\":\"/\",\"retry_after\":3,\"decision\":\"{decision}\",\"limit\":null}}"
            );
        }
    }
    let expected = ["198.51.100.", "2001:db8::a"].map(|start| (0..4).map(move |number| format!("{start}{number}")));
    assert_eq!(found(&log), expected.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn the_jail_names_the_filter() {
    let jail = fs::read_to_string("config/fail2ban/jail.d/portcullis.conf").expect("the jail");
    assert!(jail.contains("\nfilter   = portcullis\n"), "{jail}");
}
