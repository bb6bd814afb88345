//! A takeover whose successor does not come through, or is of the version before.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::support::{Gateway, Origin, Stopwatch, eventually};
use crate::takeover::control_socket;
use crate::takeover_counts::taken_over;

/// Reads fail when nothing comes.
fn connect(gateway: &Gateway) -> UnixStream {
    let successor = UnixStream::connect(control_socket(gateway)).expect("it is open");
    successor.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    successor
}

/// A process that asks for everything, and gets no further.
fn stuck(gateway: &Gateway) -> UnixStream {
    let mut successor = connect(gateway);
    successor.write_all(b"take over 2\n").unwrap();
    let mut line = String::new();
    while line != "end\n" {
        line.clear();
        BufReader::with_capacity(1, &successor).read_line(&mut line).unwrap();
    }
    successor.write_all(b"counts\n").unwrap();
    successor.read_exact(&mut [0; 64]).unwrap();
    successor
}

#[test]
fn counts_that_nobody_takes_stay() {
    let origin = Origin::start();
    let limit = "{name: tight, key: client_ip, rate: 3/hour}";
    let gateway = Gateway::start(format!("upstream: {}\nlimits: [{limit}]", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    // A successor that dies, and one that does nothing: waiting requests are decided here.
    drop(stuck(&gateway));
    assert_eq!(gateway.get("/").status(), 200);
    let mut successor = stuck(&gateway);
    let asked = Stopwatch::start();
    assert_eq!(gateway.get("/").status(), 200);
    assert!(asked.elapsed() > Duration::from_secs(2), "{:?}", asked.elapsed());
    let mut told = Vec::new();
    successor.read_to_end(&mut told).unwrap();
    assert!(told.ends_with(b"mine\n"), "{}", told.escape_ascii());
    assert_eq!(gateway.get("/").status(), 429);
    assert_eq!(taken_over(&gateway).get("/").status(), 429);
}

#[test]
fn a_gateway_that_is_stopped_is_named_while_its_successor_waits() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    gateway.pause();
    let successor = thread::scope(|scope| {
        scope.spawn(|| gateway.pause_for(Duration::from_secs(4)));
        gateway.successor()
    });
    let words = format!("the running gateway (process {}) does not answer this process", gateway.pid());
    assert!(successor.log_messages().iter().any(|line| line.contains(&words)), "{:?}", successor.log_messages());
    assert_eq!(successor.get("/").status(), 200);
}

#[test]
fn a_new_process_of_the_version_before_counts_anew() {
    let origin = Origin::start();
    let limit = "{name: tight, key: client_ip, rate: 1/hour}";
    let mut gateway = Gateway::start(format!("upstream: {}\nlimits: [{limit}]", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    let mut successor = connect(&gateway);
    successor.write_all(b"take over 1\nserving\n").unwrap();
    let mut told = String::new();
    successor.read_to_string(&mut told).unwrap_or_default();
    assert!(told.ends_with("draining\n") && !told.contains("clock"), "{told}");
    assert_eq!(gateway.ended().code(), Some(0));
    let warned = gateway.log_messages().iter().filter(|line| line.contains("counts begin anew")).count();
    assert_eq!(warned, 1);
}

/// A running gateway of the version before: it hands over nothing but the state it was given.
const BEFORE: &str = "
import os, socket, sys
control_socket = socket.socket(socket.AF_UNIX)
control_socket.bind(sys.argv[1])
control_socket.listen()
while True:
    asked, _ = control_socket.accept()
    lines = asked.makefile('rw')
    if lines.readline() != 'take over 1\\n':
        asked.close(); lines.close()
        continue
    lines.write('end\\n'); lines.flush()
    for line in lines:
        lines.write({'state\\n': 'state 0\\n', 'serving\\n': 'draining\\n'}[line]); lines.flush()
        if line == 'serving\\n':
            sys.exit(0)
";

#[test]
fn a_running_gateway_of_the_version_before_is_taken_over_from() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let control_socket = control_socket(&gateway);
    gateway.kill();
    let _ = std::fs::remove_file(&control_socket);
    let mut before =
        std::process::Command::new("python3").args(["-c", BEFORE]).arg(&control_socket).spawn().expect("python3");
    eventually("it listens", || UnixStream::connect(&control_socket).is_ok());
    let next = gateway.successor();
    assert!(next.log_messages().iter().any(|line| line.contains("of an older version")), "{:?}", next.log_messages());
    assert_eq!(next.get("/").status(), 200);
    eventually("the one before ends", || before.try_wait().expect("a child").is_some());
    assert!(before.wait().expect("a child").success());
}
