//! A file system that hangs delays no signal and no client.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Answer, Gateway, HangingFiles, Origin, Request, binary, eventually};

/// A gateway that reads one of these files, which hangs, and is at it.
fn reading(files: &HangingFiles, origin: &Origin) -> Gateway {
    let list = files.path("list.txt");
    let gateway = Gateway::start(format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nlists: {{abusers: {{file: {}}}}}\naccess: {{deny: [abusers]}}",
        origin.url(),
        list.display()
    ));
    files.hang();
    gateway.signal("HUP");
    files.wait_for_blocked_reader();
    gateway
}

fn goes_on(gateway: &Gateway) {
    assert_eq!(gateway.get("/").status(), 200);
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(Request::new(gateway.admin(), "GET", probe).status(), 200, "{probe}");
    }
}

#[test]
fn while_a_list_cannot_be_read_reloads_are_answered_and_take_place_when_it_can() {
    let (origin, files) = (Origin::start(), HangingFiles::mount());
    let gateway = reading(&files, &origin);
    for expected in 1..=3 {
        goes_on(&gateway);
        gateway.signal("HUP");
        let answers = || gateway.log_messages().iter().filter(|line| line.starts_with("a reload is under way")).count();
        eventually("the reload is answered", || answers() == expected);
    }
    assert_eq!(gateway.reloads(), 0);
    files.recover();
    eventually("it is read, and once more for those who asked meanwhile", || gateway.reloads() == 2);
    assert_eq!(gateway.failed_reloads(), 0);
    goes_on(&gateway);
}

#[test]
fn while_a_list_cannot_be_read_the_gateway_drains_when_it_is_told_to() {
    let (origin, files) = (Origin::start(), HangingFiles::mount());
    let mut gateway = reading(&files, &origin);
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
    assert!(gateway.log_messages().iter().any(|line| line.starts_with("drained")), "{:?}", gateway.log_messages());
}

#[test]
fn while_a_list_cannot_be_read_a_second_signal_ends_the_gateway_at_once() {
    let origin = Origin::answering(|_| Answer::ok("late").after(Duration::from_secs(20)));
    let files = HangingFiles::mount();
    let mut gateway = reading(&files, &origin);
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    eventually("the request is under way", || origin.count() == 1);
    gateway.signal("TERM");
    eventually("it drains", || gateway.log_messages().iter().any(|line| line.starts_with("draining")));
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
    assert!(gateway.log_messages().iter().any(|line| line == "ended at once"), "{:?}", gateway.log_messages());
}

#[test]
fn an_audit_trail_that_cannot_be_opened_holds_up_nothing_but_its_reload() {
    let origin = Origin::start();
    for place in ["file", "sqlite"] {
        let files = HangingFiles::mount();
        let config = format!("upstream: {}\nadmin: {{address: 127.0.0.1:0}}\n", origin.url());
        let mut gateway = Gateway::start(&config);
        files.hang();
        gateway.write_config(format!("{config}audit: {{{place}: {}}}", files.path("audit").display()));
        files.wait_for_blocked_reader();
        goes_on(&gateway);
        gateway.signal("TERM");
        assert_eq!(gateway.ended().code(), Some(0));
    }
}

#[test]
fn a_start_that_cannot_read_its_list_or_its_configuration_ends_with_a_signal() {
    for name in ["list.txt", "portcullis.yaml"] {
        let (files, folder) = (HangingFiles::mount(), tempfile::tempdir().expect("a folder"));
        let mut config = folder.path().join("portcullis.yaml");
        let list = files.path(name);
        let text = format!("{LISTEN}upstream: http://127.0.0.1:9\nlists: {{abusers: {{file: {}}}}}\n", list.display());
        std::fs::write(&config, text).expect("a file");
        if name == "portcullis.yaml" {
            config = list;
        }
        files.hang();
        let mut starting = Command::new(binary())
            .args(["run", "-c"])
            .arg(config)
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        files.wait_for_blocked_reader();
        signal(&starting, "TERM");
        eventually("it ends", || starting.try_wait().expect("a child of ours").is_some());
    }
}

const LISTEN: &str = "listen: 127.0.0.1:0\n";

fn signal(process: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(process.id().to_string()).status();
    assert!(status.expect("kill is installed").success(), "no process to signal");
}
