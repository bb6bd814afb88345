//! `portcullis events` against a running gateway.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, Gateway, binary, eventually, unused_address};

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
limits: [{name: pace, key: client_ip, rate: 1/hour}]
";

#[test]
fn each_event_is_a_line_until_the_gateway_ends() {
    let mut gateway = Gateway::with_token(CONFIG);
    let mut command = Command::new(binary())
        .args(["events", "--format", "json", "--admin", &format!("http://{}", gateway.admin())])
        .env("PORTCULLIS_TOKEN", "s3cret")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(command.stdout.take().expect("a pipe")).lines();
    // Until it listens, nothing is told; each of these is one more denial.
    let (told, heard) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while let Some(Ok(line)) = lines.next() {
            drop(told.send(line));
        }
    });
    let mut first = None;
    eventually("an event is printed", || {
        gateway.get("/").send();
        first = heard.try_recv().ok();
        first.is_some()
    });
    let event: Value = serde_json::from_str(&first.expect("a line")).expect("JSON");
    assert_eq!((&event["event"], &event["limit"]), (&"denial".into(), &"pace".into()));
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    assert_eq!(command.wait().expect("a child of ours").code(), Some(0));
    reader.join().expect("the reader does not panic");
}

#[test]
fn a_gateway_that_is_not_there_is_another_exit_than_one_that_refuses() {
    let folder = Folder::empty();
    let ended = folder.run(&["events", "--admin", &format!("http://{}", unused_address())]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let gateway = Gateway::with_token(CONFIG);
    let ended = folder.run(&["events", "--admin", &format!("http://{}", gateway.admin())]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("token"), "{ended:?}");
}

#[test]
fn what_was_denied_lately_is_one_line_for_each_key() {
    let gateway = Gateway::with_token(CONFIG);
    let events = |arguments: &[&str]| gateway.run(&[&["events"], arguments].concat());
    assert_eq!(events(&["--since", "10m"]).stdout, "nothing was denied, banned or reloaded\n");
    for _ in 0..6 {
        gateway.get("/").send();
    }
    let ended = events(&["--since", "10m"]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 1), "{ended:?}");
    assert!(ended.stdout.contains("  5 denials of pace for 127.0.0.1"), "{ended:?}");
    assert_eq!(events(&["--since", "10m", "--format", "json"]).json()[0]["denied"], 5);
    assert_eq!(events(&["--since", "soon"]).code, Some(2));
    for span in ["0m", "25h", "90s"] {
        let ended = events(&["--since", span]);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{span}: {ended:?}");
        assert!(ended.stderr.contains("write whole minutes, from `1m` up to `24h`"), "{span}: {ended:?}");
    }
}

#[test]
fn bans_and_reloads_of_late_are_told_in_their_order_and_those_that_are_alike_in_one_line() {
    let gateway = Gateway::with_token(CONFIG);
    let run = |arguments: &[&str]| {
        let ended = gateway.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    for address in ["198.51.100.7", "198.51.100.8", "198.51.100.9", "198.51.100.10"] {
        run(&["bans", "add", address, "--for", "1h", "--reason", "scraping"]);
    }
    let id = run(&["bans", "list", "--format", "json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    run(&["bans", "remove", &id]);
    run(&["reload"]);
    run(&["reload"]);
    let told = run(&["events", "--since", "10m"]).stdout;
    let lines: Vec<_> = told.lines().map(|line| line.split_once("  ").expect("a time").1).collect();
    assert_eq!(lines.len(), 3, "{told}");
    assert!(lines[0].starts_with("4 bans") && lines[0].contains(": scraping: 198.51.100.10/32"), "{told}");
    assert!(lines[0].ends_with(" and 1 more"), "{told}");
    assert!(lines[1].starts_with("unban of 198.51.100."), "{told}");
    assert!(lines[2].starts_with("2 reloads") && lines[2].contains(": done: "), "{told}");
    let json = run(&["events", "--since", "10m", "--format", "json"]).json();
    assert_eq!((&json[0]["event"], &json[0]["count"]), (&"ban".into(), &4.into()));
    assert_eq!(json[0]["subjects"].as_array().map(Vec::len), Some(4));
}
