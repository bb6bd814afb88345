//! One process takes over from another, and no client notices.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use crate::support::{Answer, Gateway, Origin, RawClient, Request, StopOnDrop, eventually, repeat_until};

#[test]
fn five_takeovers_under_load_fail_no_request_and_refuse_no_connection() {
    let origin = Origin::answering(|received| {
        let answer = Answer::ok("origin");
        if received.target == "/slow" { answer.after(Duration::from_millis(300)) } else { answer }
    });
    let config = format!("upstream: {}\nadmin: {{address: 127.0.0.1:0}}", origin.url());
    let mut current = Gateway::start(config);
    let (address, admin) = (current.address(), current.admin());
    let answered = under_load(&Request::new(address, "GET", "/"), || {
        for _ in 0..5 {
            let next = current.successor();
            assert_eq!((next.address(), next.admin()), (address, admin));
            assert_eq!(current.ended().code(), Some(0));
            current = next;
        }
    });
    assert!(answered > 500, "{answered}");
    assert_eq!(Request::new(admin, "GET", "/readyz").status(), 200);
}

#[test]
fn forty_reloads_under_load_fail_no_request() {
    let origin = Origin::start();
    let config = |rate| {
        let limit = format!("{{name: all, key: client_ip, rate: {rate}/second}}");
        format!("upstream: {}\nlimits: [{limit}]", origin.url())
    };
    let gateway = Gateway::start(config(100_000));
    under_load(&gateway.get("/"), || {
        for number in 1..=40 {
            gateway.write_config(config(100_000 + number));
            gateway.signal("HUP");
            eventually("it is reloaded", || gateway.reloads() >= number);
        }
    });
    assert_eq!(gateway.failed_reloads(), 0);
}

#[test]
fn a_connection_that_rests_is_answered_once_more_and_told_to_close() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut standing: Vec<_> = (0..4).map(|_| gateway.connect()).collect();
    for client in &mut standing {
        assert_eq!(gateway.get("/").send_on(client).status, 200);
    }
    let next = gateway.successor();
    for client in &mut standing {
        let last = gateway.get("/").send_on(client);
        assert_eq!((last.status, last.header("connection")), (200, Some("close")));
        assert!(client.rest().is_empty());
    }
    assert_eq!(gateway.ended().code(), Some(0));
    assert_eq!(next.get("/").status(), 200);
}

#[test]
fn what_is_under_way_is_finished_by_the_process_that_began_it() {
    let origin = Origin::answering(|_| Answer::ok("slow").after(Duration::from_secs(1)));
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    eventually("the request is under way", || origin.count() == 1);
    let _next = gateway.successor();
    let answer = client.response();
    assert_eq!((answer.text(), answer.header("connection")), ("slow".to_owned(), Some("close")));
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn a_bad_file_ends_the_new_process_and_the_old_one_goes_on() {
    let origin = Origin::start();
    let config = format!("listen: 127.0.0.1:0\nupstream: {}\n", origin.url());
    let gateway = Gateway::start(&config);
    gateway.write("portcullis.yaml", &format!("{config}upstram: twice\n"));
    let (status, told) = gateway.failing_successor();
    assert_eq!(status.code(), Some(1));
    assert!(told.contains("portcullis.yaml:3:1") && told.contains("upstram"), "{told}");
    assert_eq!(gateway.get("/").status(), 200);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen =
        format!("listen: [\"127.0.0.1:0\", \"{}\"]\nupstream: {}\n", taken.local_addr().unwrap(), origin.url());
    gateway.write("portcullis.yaml", &listen);
    let (status, told) = gateway.failing_successor();
    assert_eq!(status.code(), Some(1));
    assert!(told.contains("already in use"), "{told}");
    eventually("the old one says so", || gateway.log_messages().iter().any(|line| line.contains("this one goes on")));
    assert_eq!(gateway.get("/").status(), 200);

    gateway.write("portcullis.yaml", &config);
    let next = gateway.successor();
    assert_eq!(next.address(), gateway.address());
}

#[test]
fn without_a_running_gateway_it_simply_starts() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    gateway.kill();
    let next = gateway.successor();
    assert!(next.log_messages().iter().any(|line| line.contains("nothing to take over")), "{:?}", next.log_messages());
    assert_eq!(next.get("/").status(), 200);
}

#[test]
fn an_address_may_come_and_another_may_go_with_a_takeover() {
    let origin = Origin::start();
    let upstream = format!("upstream: {}", origin.url());
    let mut gateway = Gateway::start(format!("listen: ['127.0.0.1:0', '127.0.0.2:0']\n{upstream}"));
    let (kept, gone) = (gateway.address(), gateway.addresses()[1]);
    gateway.write("portcullis.yaml", &format!("listen: ['127.0.0.1:0', '127.0.0.3:0']\n{upstream}\n"));
    let next = gateway.successor();
    gateway.ended();
    assert_eq!(next.addresses()[0], kept);
    for address in next.addresses() {
        assert_eq!(Request::new(address, "GET", "/").status(), 200);
    }
    assert!(TcpStream::connect(gone).is_err());
}

#[test]
fn a_signal_starts_the_process_that_takes_over() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let config = fs::read_to_string(gateway.path("portcullis.yaml")).unwrap();
    gateway.write("portcullis.yaml", "nonsense");
    gateway.signal("USR2");
    let failed = |line: &String| line.contains("did not take over: exit status: 1");
    eventually("the failure is told", || gateway.log_messages().iter().any(failed));
    assert_eq!(gateway.get("/").status(), 200);

    gateway.write("portcullis.yaml", &config);
    let _successor = StartedProcess(&gateway);
    under_load(&gateway.get("/"), || {
        gateway.signal("USR2");
        eventually("the new one serves", || gateway.log_messages().iter().any(|line| line.contains("has taken over")));
    });
    eventually("the old one ends", || {
        fs::read_to_string(format!("/proc/{}/stat", gateway.pid())).is_ok_and(|stat| stat.contains(") Z "))
    });
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn a_new_process_that_dies_leaves_the_old_one_as_it_was() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    for words in ["", "take over 1\n", "take over 1\nstate\n", "take over 99\n", "take over 1\nnonsense\n"] {
        let told = complaints(&gateway);
        let mut newcomer = UnixStream::connect(control_socket(&gateway)).expect("it is open");
        newcomer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        newcomer.write_all(words.as_bytes()).unwrap();
        newcomer.shutdown(std::net::Shutdown::Write).unwrap();
        drop(newcomer.read_to_end(&mut Vec::new()));
        drop(newcomer);
        eventually("it goes on", || complaints(&gateway) > told);
        assert_eq!(gateway.get("/").status(), 200, "{words:?}");
    }
    assert_eq!(gateway.successor().get("/").status(), 200);
}

#[test]
fn only_its_user_finds_it() {
    let origin = Origin::start();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut gateway = Gateway::start(format!("listen: \"{free}\"\nupstream: {}", origin.url()));
    let control_socket = control_socket(&gateway);
    let directory = control_socket.parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    // A directory that others may enter is not believed in, from either side.
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let (status, told) = gateway.failing_successor();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains("nothing to take over") && told.contains("already in use"), "{told}");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    gateway.signal("TERM");
    gateway.ended();
    assert!(!control_socket.exists());
}

/// Changes its user and asks for a takeover at the control socket. It exits with 0 if the socket was closed without an
/// answer, with 13 if it is not accessible, and with 1 if it answered.
const STRANGER: &str = "
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
control_socket = socket.socket(socket.AF_UNIX)
try:
    control_socket.connect(sys.argv[1])
    control_socket.sendall(b'take over 1\\n')
    sys.exit(1 if control_socket.recv(1) else 0)
except PermissionError:
    sys.exit(13)
except (BrokenPipeError, ConnectionResetError):
    sys.exit(0)
";

#[test]
#[expect(clippy::print_stderr, reason = "where half of a test cannot be done, it says so")]
fn another_user_is_handed_nothing() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let control_socket = control_socket(&gateway);
    let directory = control_socket.parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return eprintln!("only root can become another user: the permissions alone were looked at");
    }
    let stranger = || {
        let asked = Command::new("python3").args(["-c", STRANGER]).arg(&control_socket).current_dir("/").output();
        let asked = asked.expect("python3 is installed");
        assert!(asked.stderr.is_empty(), "{}", String::from_utf8_lossy(&asked.stderr));
        asked.status.code()
    };
    assert_eq!(stranger(), Some(13));
    // Also where the socket is accessible and only the peer's user id is left to check.
    let open = |path: &std::path::Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    for path in [&gateway.path("."), &directory, &control_socket] {
        open(path);
    }
    assert_eq!(stranger(), Some(0));
    eventually("it is logged", || gateway.log_messages().iter().any(|line| line.contains("of another user")));
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn bans_are_known_to_the_process_that_takes_over() {
    for snapshot in ["", "store: {memory: {snapshot: state}}\n"] {
        let origin = Origin::start();
        let ban = "limits: [{name: tight, key: client_ip, rate: 1/hour, then: {ban: 1h}}]";
        let mut gateway = Gateway::start(format!("upstream: {}\n{snapshot}{ban}", origin.url()));
        assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 429]);
        for _ in 0..2 {
            let next = gateway.successor();
            gateway.ended();
            gateway = next;
            assert_eq!(gateway.get("/").status(), 429);
        }
        if !snapshot.is_empty() {
            gateway.restart();
            assert_eq!(gateway.get("/").status(), 429);
        }
    }
}

/// Clients that stay, clients that come and go, and slow requests, while something else is done. Nothing may fail.
fn under_load(request: &Request, done: impl FnOnce()) -> usize {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let slow = request.clone().target("/slow");
        let clients = (0..12).map(|number| {
            let request = if number % 4 == 3 { slow.clone() } else { request.clone() };
            let (over, answered) = (&over, &answered);
            scope.spawn(move || {
                let stays = number % 2 == 0;
                let mut standing: Option<RawClient> = None;
                // Of those that stay, some ask again at once, others after a while.
                let pause = Duration::from_millis(match number {
                    _ if !stays => 0,
                    _ if number % 3 == 0 => 1500,
                    _ => 1,
                });
                repeat_until(
                    || over.load(Ordering::SeqCst),
                    pause,
                    || {
                        let mut client = standing.take().unwrap_or_else(|| request.connect());
                        let response = request.send_on(&mut client);
                        assert_eq!(response.status, 200);
                        answered.fetch_add(1, Ordering::SeqCst);
                        if stays && response.header("connection") != Some("close") {
                            standing = Some(client);
                        }
                    },
                );
            })
        });
        let clients: Vec<_> = clients.collect();
        let end = StopOnDrop(&over);
        done();
        drop(end);
        for client in clients {
            client.join().expect("no request fails");
        }
    });
    answered.into_inner()
}

pub(crate) fn control_socket(gateway: &Gateway) -> PathBuf {
    let entries = fs::read_dir(gateway.path("portcullis")).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    names.pop().expect("a control socket")
}

fn complaints(gateway: &Gateway) -> usize {
    gateway.log_messages().iter().filter(|line| line.contains("does not serve")).count()
}

/// The process that this gateway started to take over from it, and which outlives it.
struct StartedProcess<'g>(&'g Gateway);

impl Drop for StartedProcess<'_> {
    fn drop(&mut self) {
        let number =
            |line: &String| line.strip_prefix("process ")?.split(" has taken over").next()?.parse::<u32>().ok();
        if let Some(number) = self.0.log_messages().iter().find_map(number) {
            let _ = Command::new("kill").arg("-KILL").arg(number.to_string()).status();
        }
    }
}
