//! `portcullis demo`.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use crate::support::{Folder, Request, binary};

#[test]
fn the_sixth_wrong_password_does_not_reach_the_application() {
    let demo = Demo::start();
    let guess = || Request::new(demo.address, "POST", "/login").form("username=alice&password=wrong").send().status;
    let statuses: Vec<u16> = (0..6).map(|_| guess()).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    assert_eq!(Request::new(demo.address, "GET", "/login").send().status, 200);
}

#[test]
fn the_right_password_logs_in() {
    let demo = Demo::start();
    let response = Request::new(demo.address, "POST", "/login").form("username=alice&password=open+sesame").send();
    assert_eq!((response.status, response.header("location")), (302, Some("/account")));
    assert_eq!(Request::new(demo.address, "GET", "/account").send().status, 200);
}

#[test]
fn the_demo_answers_the_other_commands() {
    let demo = Demo::start();
    let admin = format!("http://{}", demo.admin);
    let ask = |arguments: &[&str]| Folder::empty().run(&[arguments, &["--admin", &admin]].concat());
    assert_eq!(ask(&["health"]).code, Some(0));
    assert_eq!(ask(&["limits", "list"]).code, Some(0));
    assert_eq!(ask(&["bans", "add", "127.0.0.1", "--for", "1m"]).code, Some(0));
    assert_eq!(Request::new(demo.address, "GET", "/login").send().status, 403);
}

#[test]
fn where_the_usual_admin_address_is_taken_the_demo_has_another() {
    // Either this takes it, or another process has.
    let _taken = TcpListener::bind("127.0.0.1:9090");
    assert_ne!(Demo::with(&[]).admin.port(), 9090);
}

#[test]
fn a_taken_address_is_a_clear_message() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = Folder::empty().run(&["demo", "--listen", &address]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&format!("cannot listen on {address}")), "{ended:?}");
}

#[test]
fn the_application_runs_alone_where_a_gateway_elsewhere_asks_for_it() {
    let mut application = Application::start(&["demo", "--application-only", "127.0.0.1:0"].map(str::to_owned));
    let guess = || Request::new(application.address, "POST", "/login").form("username=alice&password=wrong").send();
    assert_eq!((0..6).map(|_| guess().status).collect::<Vec<_>>(), [401; 6]);
    assert_eq!(Request::new(application.address, "GET", "/healthz").send().status, 200);
    assert_eq!(application.terminated(), Some(0));
}

#[test]
fn an_application_that_cannot_listen_is_a_clear_message() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = Folder::empty().run(&["demo", "--application-only", &address]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&format!("cannot listen on {address}")), "{ended:?}");
}

/// The sample application alone, on a free port; killed when it is dropped.
pub(crate) struct Application {
    child: Child,
    address: SocketAddr,
}

impl Application {
    pub(crate) fn start(arguments: &[String]) -> Self {
        let mut child = Command::new(binary())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("text");
        let (_, address) = line.trim_end_matches(".\n").split_once(" runs on ").expect("it says where it is");
        Self { address: address.parse().expect("an address"), child }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it ends when it is told to.
    fn terminated(&mut self) -> Option<i32> {
        let status = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(status.expect("kill is installed").success(), "no process to signal");
        self.child.wait().expect("a child of ours").code()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The demo on a free port; killed when it is dropped.
struct Demo {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Demo {
    fn start() -> Self {
        // Demos that begin at once would all want the usual address.
        Self::with(&["--admin", "127.0.0.1:0"])
    }

    fn with(flags: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.as_mut().expect("piped"));
        let mut lines = stdout.lines().map(|line| line.expect("text"));
        let mut behind = |words: &str, end: char| {
            let address = lines.find_map(|line| Some(line.split_once(words)?.1.trim_end_matches(end).to_owned()));
            address.and_then(|address| address.parse().ok()).expect("the demo says where it is")
        };
        let (address, admin) = (behind("in front of it on ", '.'), behind("The admin listener is on ", ':'));
        Self { child, address, admin }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
