//! The file of the log, and the name of the gateway in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Gateway, Origin, eventually};

fn config(origin: &Origin, log: &str) -> String {
    format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\ngateway: {{name: \"${{GATEWAY_NAME:-eu-1}}\"}}\nlog: {log}\n",
        origin.url()
    )
}

fn lines(gateway: &Gateway, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(gateway.path(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("whole lines of JSON")).collect()
}

#[track_caller]
fn logs(gateway: &Gateway, name: &str, path: &str) {
    eventually("the request is in the file", || lines(gateway, name).iter().any(|line| line["path"] == path));
}

#[test]
fn both_logs_go_to_a_file_that_is_begun_anew_when_it_is_moved_and_on_a_signal() {
    let origin = Origin::start();
    let gateway = Gateway::start(config(&origin, "{file: log.jsonl}"));
    gateway.get("/one").send();
    logs(&gateway, "log.jsonl", "/one");
    let mode = fs::metadata(gateway.path("log.jsonl")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777 & !0o640, 0, "{mode:o}");
    let of_start = lines(&gateway, "log.jsonl");
    assert!(of_start.iter().all(|line| line["gateway"] == "eu-1"), "{of_start:?}");
    assert!(of_start.iter().any(|line| line["message"].as_str().is_some_and(|text| text.ends_with(" as eu-1"))));
    assert!(gateway.stdout().is_empty());

    fs::rename(gateway.path("log.jsonl"), gateway.path("log.1")).expect("the file is moved");
    gateway.get("/two").send();
    logs(&gateway, "log.jsonl", "/two");
    // Nothing is written meanwhile: the signal alone begins the file.
    fs::remove_file(gateway.path("log.jsonl")).expect("the file is removed");
    gateway.signal("USR1");
    eventually("the file is there", || gateway.path("log.jsonl").exists());
    gateway.get("/three").send();
    logs(&gateway, "log.jsonl", "/three");
    assert_eq!(lines(&gateway, "log.1").iter().filter(|line| line["path"].is_string()).count(), 1);
}

#[test]
fn a_file_that_takes_no_lines_stops_no_request_and_is_told_of_on_standard_error() {
    let origin = Origin::start();
    let gateway = Gateway::start(config(&origin, "{file: log.jsonl}"));
    fs::create_dir(gateway.path("logs")).expect("a folder");
    gateway.write_config(config(&origin, "{file: logs/log.jsonl}"));
    gateway.signal("HUP");
    eventually("the other file is in force", || {
        gateway.path("logs/log.jsonl").exists() && {
            gateway.get("/zero").send();
            lines(&gateway, "logs/log.jsonl").iter().any(|line| line["path"] == "/zero")
        }
    });
    gateway.get("/one").send();
    logs(&gateway, "logs/log.jsonl", "/one");
    fs::rename(gateway.path("logs"), gateway.path("gone")).expect("the folder is moved");
    assert_eq!(gateway.get("/two").status(), 200);
    eventually("it is told", || gateway.stderr().iter().any(|line| line.contains("cannot write the log to")));
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    assert!(metrics.contains("\nportcullis_access_log_dropped_lines 1\n"), "{metrics}");
    fs::rename(gateway.path("gone"), gateway.path("logs")).expect("the folder is back");
    gateway.get("/three").send();
    logs(&gateway, "logs/log.jsonl", "/three");
    eventually("that is told too", || {
        let messages = lines(&gateway, "logs/log.jsonl");
        messages.iter().any(|line| line["message"].as_str().is_some_and(|text| text.ends_with("again")))
    });
}

#[test]
fn a_reload_changes_the_file_and_the_name_or_keeps_both() {
    let origin = Origin::start();
    let gateway = Gateway::start(config(&origin, "{file: a.jsonl}"));
    gateway.write_config(config(&origin, "{file: nowhere/b.jsonl}").replace("eu-1", "eu-2"));
    gateway.signal("HUP");
    let reason =
        || lines(&gateway, "a.jsonl").iter().any(|line| line["message"].to_string().contains("nowhere/b.jsonl"));
    eventually("it is refused", reason);
    gateway.get("/one").send();
    logs(&gateway, "a.jsonl", "/one");
    // What opened its files and is refused then leaves none of them behind.
    let files = "{file: refused.jsonl}\naudit: {file: refused-too.jsonl}";
    let taken = format!("listen: {}\n{}", origin.address(), config(&origin, files));
    gateway.write_config(taken);
    gateway.signal("HUP");
    let taken = || lines(&gateway, "a.jsonl").iter().any(|line| line.to_string().contains("already in use"));
    eventually("it is refused", taken);
    eventually("nothing is left", || {
        ["refused.jsonl", "refused-too.jsonl"].iter().all(|name| !gateway.path(name).exists())
    });
    gateway.write_config(config(&origin, "{file: b.jsonl}").replace("eu-1", "eu-2"));
    gateway.signal("HUP");
    eventually("the name is another", || {
        gateway.admin_request("GET", "/api/v1/status").send().json()["gateway"] == json!("eu-2")
    });
    gateway.get("/two").send();
    logs(&gateway, "b.jsonl", "/two");
    assert!(lines(&gateway, "b.jsonl").iter().all(|line| line["gateway"] == "eu-2"));
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    assert!(metrics.contains("gateway=\"eu-2\"} 1"), "{metrics}");
}

#[test]
fn without_a_name_a_gateway_is_called_by_its_machine_and_its_first_listener() {
    let gateway = Gateway::start(format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n", Origin::start().url()));
    let status = gateway.admin_request("GET", "/api/v1/status").send().json();
    let name = status["gateway"].as_str().expect("a name");
    assert!(name.ends_with(&format!(":{}", gateway.address().port())), "{name}");
    assert!(status["gateways"][0]["id"].as_str().expect("an id").starts_with(&name.replace(':', "-")));
}

#[test]
fn a_process_that_takes_over_goes_on_in_the_same_file() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(config(&origin, "{file: log.jsonl}"));
    gateway.get("/one").send();
    let successor = gateway.successor();
    gateway.ended();
    successor.get("/two").send();
    for path in ["/one", "/two"] {
        logs(&gateway, "log.jsonl", path);
    }
}
