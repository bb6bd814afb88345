//! The notifications to systemd, and socket activation.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Gateway, Origin, eventually};

/// The side of the manager.
struct Manager {
    socket: UnixDatagram,
    folder: TempDir,
    told: Vec<String>,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout above zero");
        Self { socket, folder, told: Vec::new() }
    }

    fn path(&self) -> String {
        self.folder.path().join("notify").to_str().expect("text").to_owned()
    }

    /// Waits for a message with these lines, and drops the messages before it.
    #[track_caller]
    fn hears(&mut self, lines: &[&str]) {
        eventually(&format!("{lines:?} is said"), || {
            let mut message = [0; 1024];
            while let Ok(length) = self.socket.recv(&mut message) {
                let message = String::from_utf8_lossy(&message[..length]).into_owned();
                let is_it = lines.iter().all(|wanted| message.lines().any(|line| line.starts_with(wanted)));
                self.told.push(message);
                if is_it {
                    return true;
                }
            }
            false
        });
    }

    fn has_heard(&self, line: &str) -> bool {
        self.told.iter().any(|message| message.lines().any(|said| said == line))
    }
}

#[test]
fn readiness_reloads_and_the_end_are_told() {
    let (origin, mut manager) = (Origin::start(), Manager::new());
    let config = format!("upstream: {}", origin.url());
    let mut gateway = Gateway::in_environment(&config, &[], &[("NOTIFY_SOCKET", &manager.path())]);
    manager.hears(&["READY=1"]);
    gateway.signal("HUP");
    manager.hears(&["RELOADING=1", "MONOTONIC_USEC="]);
    manager.hears(&["READY=1"]);
    gateway.write_config("nonsense");
    manager.hears(&["RELOADING=1"]);
    manager.hears(&["READY=1"]);
    assert!(!manager.has_heard("WATCHDOG=1"));
    gateway.signal("TERM");
    manager.hears(&["STOPPING=1"]);
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn a_manager_with_an_abstract_socket_is_told() {
    let (origin, folder) = (Origin::start(), tempfile::tempdir().expect("a folder"));
    let name = folder.path().to_str().expect("text").to_owned();
    let address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let socket = UnixDatagram::bind_addr(&address).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout above zero");
    let mut manager = Manager { socket, folder, told: Vec::new() };
    let config = format!("upstream: {}", origin.url());
    let gateway = Gateway::in_environment(&config, &[], &[("NOTIFY_SOCKET", &format!("@{name}"))]);
    manager.hears(&["READY=1"]);
    gateway.signal("HUP");
    manager.hears(&["RELOADING=1", "MONOTONIC_USEC="]);
}

#[test]
fn a_manager_that_does_not_listen_any_more_holds_nobody_up() {
    let (origin, manager) = (Origin::start(), Manager::new());
    let (config, path) = (format!("upstream: {}", origin.url()), manager.path());
    let environment = [("NOTIFY_SOCKET", &*path), ("WATCHDOG_USEC", "2000")];
    let mut gateway = Gateway::in_environment(&config, &[], &environment);
    eventually("no process reads the output", || {
        gateway.stderr().iter().any(|line| line.contains("cannot notify the service manager"))
    });
    for _ in 0..20 {
        assert_eq!(gateway.get("/").status(), 200);
    }
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn the_watchdog_is_reassured_as_long_as_every_core_serves() {
    let (origin, mut manager) = (Origin::start(), Manager::new());
    let (config, path) = (format!("upstream: {}", origin.url()), manager.path());
    let environment = [("NOTIFY_SOCKET", &*path), ("WATCHDOG_USEC", "200000")];
    let gateway = Gateway::in_environment(&config, &[], &environment);
    for _ in 0..3 {
        manager.hears(&["WATCHDOG=1"]);
    }
    drop(gateway);
    let other = [("NOTIFY_SOCKET", &*path), ("WATCHDOG_USEC", "100000"), ("WATCHDOG_PID", "1")];
    let mut manager = Manager { told: Vec::new(), ..manager };
    let mut gateway = Gateway::in_environment(&config, &[], &other);
    manager.told.clear();
    gateway.signal("HUP");
    manager.hears(&["RELOADING=1"]);
    manager.told.clear();
    gateway.signal("TERM");
    manager.hears(&["STOPPING=1"]);
    assert!(!manager.has_heard("WATCHDOG=1"));
    gateway.ended();
}

#[test]
fn a_takeover_names_the_new_process_and_the_old_one_does_not_say_that_it_stops() {
    let (origin, mut manager) = (Origin::start(), Manager::new());
    let config = format!("upstream: {}", origin.url());
    let mut gateway = Gateway::in_environment(&config, &[], &[("NOTIFY_SOCKET", &manager.path())]);
    manager.hears(&["READY=1"]);
    let next = gateway.successor();
    let process = format!("MAINPID={}", next.pid());
    manager.hears(&[&process]);
    manager.hears(&[&process, "READY=1"]);
    assert_eq!(gateway.ended().code(), Some(0));
    next.signal("HUP");
    manager.hears(&["RELOADING=1"]);
    assert!(!manager.has_heard("STOPPING=1"));
}

#[test]
fn a_socket_of_the_service_manager_is_served() {
    let origin = Origin::start();
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("a bound socket");
    let config = format!("listen: [\"{address}\", \"127.0.0.1:0\"]\nupstream: {}", origin.url());
    let mut gateway = Gateway::activated(config, socket);
    assert_eq!(gateway.addresses()[0], address);
    // Each core may get the request.
    for _ in 0..20 {
        assert_eq!(gateway.get("/").status(), 200);
    }
    let said = gateway.log_messages();
    let unwanted: Vec<_> = said.iter().filter(|line| line.contains("does not listen there")).collect();
    assert_eq!(unwanted.len(), 1, "{said:?}");

    let mut next = gateway.successor();
    assert_eq!(gateway.ended().code(), Some(0));
    assert_eq!(next.address(), address);
    assert_eq!(next.get("/").status(), 200);
    next.signal("TERM");
    next.ended();
}
