//! Several servers of one upstream: balancing, and requests while a server leaves or returns.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;

use crate::support::{Answer, Gateway, Origin, RawClient, Request, StopOnDrop, eventually};

fn among(servers: &[String], more: &str) -> Gateway {
    let servers = servers.join(", ");
    Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: app\nupstreams:\n  app: {{servers: [{servers}], {more}}}"
    ))
}

/// nginx in a process of its own, which can be killed.
struct Nginx {
    folder: TempDir,
    address: SocketAddr,
    child: Child,
}

impl Nginx {
    fn start() -> Self {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let folder = tempfile::tempdir().expect("a folder");
        let config = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr crit;
             events {{}}
             http {{ access_log off; server {{ listen {address}; location / {{ return 200 well; }} }} }}"
        );
        std::fs::write(folder.path().join("nginx.conf"), config).expect("a file");
        let child = Self::spawn(&folder);
        let nginx = Self { folder, address, child };
        nginx.answers();
        nginx
    }

    fn spawn(folder: &TempDir) -> Child {
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf"]).stderr(Stdio::null());
        command.spawn().expect("nginx is installed")
    }

    fn answers(&self) {
        eventually("nginx accepts connections", || TcpStream::connect(self.address).is_ok());
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child of ours");
    }

    fn restart(&mut self) {
        self.child = Self::spawn(&self.folder);
        self.answers();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn no_get_is_lost_when_one_of_two_servers_is_killed_and_returns_under_load() {
    let mut servers = [Nginx::start(), Nginx::start()];
    let urls: Vec<String> = servers.iter().map(|server| format!("http://{}", server.address)).collect();
    for balance in ["least_requests", "round_robin", "client_ip"] {
        let gateway = among(&urls, &format!("balance: {balance}"));
        let (stop, passed, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            for client in 1..=4 {
                let (gateway, stop, passed, failed) = (&gateway, &stop, &passed, &failed);
                scope.spawn(move || {
                    let mut connection = RawClient::connect_from(IpAddr::from([127, 0, 0, client]), gateway.address());
                    while !stop.load(Ordering::Relaxed) {
                        let status = gateway.get("/").send_on(&mut connection).status;
                        if status == 200 { passed } else { failed }.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let more = |count| {
                let before = passed.load(Ordering::Relaxed);
                eventually("requests pass", || {
                    passed.load(Ordering::Relaxed) + failed.load(Ordering::Relaxed) > before + count
                });
            };
            for server in &mut servers {
                more(200);
                server.kill();
                more(200);
                server.restart();
                more(200);
            }
        });
        assert_eq!(failed.into_inner(), 0, "of {} with {balance}", passed.into_inner());
    }
}

#[test]
fn client_ip_keeps_a_client_at_its_server_and_moves_only_those_of_one_that_left() {
    let origins: Vec<Origin> =
        (0..3).map(|number| Origin::answering(move |_| Answer::ok(format!("{number}")))).collect();
    let down = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let urls = |leaving: Option<usize>| -> String {
        let url =
            |number: usize| if leaving == Some(number) { format!("http://{down}") } else { origins[number].url() };
        (0..3).map(url).collect::<Vec<_>>().join(", ")
    };
    let config =
        |leaving| format!("upstream: app\nupstreams:\n  app: {{servers: [{}], balance: client_ip}}", urls(leaving));
    let gateway = Gateway::start(config(None));
    let ask = || -> Vec<String> {
        (1..=40).map(|client| gateway.get("/").from(&format!("127.0.1.{client}")).send().text()).collect()
    };
    let before = ask();
    assert_eq!(before, ask());
    for number in ["0", "1", "2"] {
        assert!(before.iter().any(|server| server == number), "{before:?}");
    }
    gateway.reload(config(Some(1)));
    for (before, after) in before.iter().zip(ask()) {
        assert!(if before == "1" { after != "1" } else { *before == after }, "{before} {after}");
    }
    gateway.reload(config(None));
    assert_eq!(before, ask());
}

#[test]
fn a_name_is_all_of_its_addresses_and_counted_as_what_was_written() {
    let origin = Origin::start();
    let port = origin.address().port();
    let gateway = among(&[format!("http://localhost:{port}")], "balance: round_robin");
    eventually("the name is looked up", || {
        gateway.log_messages().iter().any(|line| line.contains("a server's name has these addresses now"))
    });
    for number in 0..20 {
        assert_eq!(gateway.post("/").form(&format!("n={number}")).status(), 200);
    }
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let label = format!("server=\"localhost:{port}\"");
    let of_server = |line: &&str| line.starts_with("portcullis_upstream_requests_total{") && line.contains("server=");
    let lines: Vec<&str> = metrics.lines().filter(of_server).collect();
    assert!(lines.iter().all(|line| line.contains(&label)) && !lines.is_empty(), "{lines:?}");
    assert_eq!(metrics.lines().filter(|line| line.starts_with("portcullis_upstream_healthy{")).count(), 1);
    assert_eq!(gateway.log_line("/")["upstream"], "app");
}

#[test]
fn a_server_that_is_away_costs_others_nothing_and_is_used_again_when_it_is_back() {
    let (near, far) = (Origin::start(), Origin::start());
    let address = far.address();
    let gateway = among(&[near.url(), far.url()], "balance: round_robin");
    drop(far);
    for _ in 0..20 {
        assert_eq!(gateway.post("/").form("a=b").status(), 200);
    }
    eventually("failures of the server are counted, and it is shown to get nothing", || {
        assert_eq!(gateway.post("/").form("a=b").status(), 200);
        let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
        let of_server = metrics.lines().filter(|line| line.contains(&format!("server=\"{address}\"")));
        let has = |name: &str, end: &str| of_server.clone().any(|line| line.starts_with(name) && line.ends_with(end));
        has("portcullis_upstream_errors_total{", "") && has("portcullis_upstream_healthy{", " 0")
    });
    let back = Origin::start_on(address);
    eventually("the server is used again", || {
        assert_eq!(gateway.get("/").status(), 200);
        back.count() > 0
    });
}
