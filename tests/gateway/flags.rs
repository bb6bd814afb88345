//! A gateway without a configuration file, and starts that fail.

use std::net::TcpListener;
use std::process::{Command, Output};

use crate::support::{Gateway, Origin, binary};

#[test]
fn flags_alone_limit_a_login() {
    let origin = Origin::start();
    let gateway = Gateway::with_flags(&[
        "--upstream",
        &origin.url(),
        "--listen",
        "127.0.0.1:0",
        "--limit",
        "POST /login client_ip 2/minute",
        "--limit",
        "/search client_ip 1/hour",
    ]);
    let login: Vec<u16> = (0..3).map(|_| gateway.post("/login").form("user=al").status()).collect();
    assert_eq!(login, [200, 200, 429]);
    assert_eq!(gateway.get("/login").status(), 200);
    assert_eq!([gateway.get("/search").status(), gateway.post("/search").form("").status()], [200, 429]);
}

#[test]
fn the_smallest_useful_file_works() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "listen: 127.0.0.1:0\nupstream: {}\nroutes:\n  - match: POST /login\n    limits:\n      - {{key: client_ip, rate: 1/second; 20/minute; 200/hour; 800/day}}",
        origin.url()
    ));
    assert_eq!(gateway.post("/login").form("user=al").status(), 200);
    assert_eq!(gateway.post("/login").form("user=al").status(), 429);
    assert_eq!(gateway.get("/login").status(), 200);
}

/// Runs the binary with a file that cannot be served, until it ends.
fn failed_start(config: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("portcullis.yaml"), config).expect("a file");
    Command::new(binary()).arg("run").current_dir(folder.path()).output().expect("the binary runs")
}

#[test]
fn an_address_in_use_is_a_clear_message_and_nothing_is_half_started() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound");
    let output = failed_start(&format!("listen: {address}\nupstream: http://127.0.0.1:1\n"));
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(&address.to_string()) && message.contains("in use"), "{message}");
}

#[test]
fn a_second_gateway_on_the_same_address_does_not_start() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let output = failed_start(&format!("listen: {}\nupstream: {}\n", gateway.address(), origin.url()));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn a_malformed_file_is_told_with_its_place() {
    let output = failed_start("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nlimit: []\n");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("portcullis.yaml:3:1"), "{message}");
    assert!(message.contains("limits"), "{message}");
}
