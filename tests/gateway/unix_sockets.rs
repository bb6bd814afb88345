//! An application on a Unix socket: a real nginx, and one whose queue is short.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

use crate::support::{Gateway, Nginx, eventually};

/// nginx also answers on `app.sock` in this folder. Only the host `app.test` is well there.
fn nginx(folder: &Path) -> Nginx {
    let socket = folder.join("app.sock");
    let server = format!(
        "server {{\nlisten LISTEN;\nlisten unix:{};\nserver_name app.test;\n\
         location / {{ return 200 \"$request_method $request_uri $http_host\"; }}\nlocation /healthz {{ return 200 well; }}\n}}\n\
         server {{\nlisten unix:{0} default_server;\nlocation / {{ return 400 \"unknown $http_host\"; }}\n}}",
        socket.display()
    );
    Nginx::start(&server, &[])
}

#[test]
fn requests_reach_an_application_on_a_unix_socket() {
    let folder = TempDir::new().expect("a folder");
    let _nginx = nginx(folder.path());
    let url = format!("http://unix:{}/app.sock", folder.path().display());
    let gateway = Gateway::start(format!("upstream: {url}\nadmin: {{address: 127.0.0.1:0}}"));
    let mut client = gateway.connect();
    for target in ["/a?b=c", "/d%2Fe"] {
        let response = gateway.get(target).host("app.test").send_on(&mut client);
        assert_eq!(response.text(), format!("GET {target} app.test"));
    }
    let name = format!("unix:{}/app.sock", folder.path().display());
    assert_eq!(gateway.log_line("/a")["server"], *name);
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    assert!(metrics.contains(&format!("server=\"{name}\"}} 1")), "{metrics}");
}

#[test]
fn a_socket_that_is_not_there_is_a_server_that_is_down() {
    let folder = TempDir::new().expect("a folder");
    let url = format!("http://unix:{}/app.sock", folder.path().display());
    let gateway = Gateway::start(format!("upstream: {url}"));
    assert_eq!(gateway.get("/").host("app.test").status(), 502);
    // Its other address answers first.
    let _nginx = nginx(folder.path());
    eventually("the application is reached", || gateway.get("/").host("app.test").status() == 200);
}

#[test]
fn checks_of_health_name_the_host_that_is_written() {
    let folder = TempDir::new().expect("a folder");
    let _nginx = nginx(folder.path());
    let status = |host: &str| {
        let server = format!("http://unix:{}/app.sock", folder.path().display());
        let health = format!("health: {{path: /healthz, every: 20ms, unhealthy: 1{host}}}");
        let gateway =
            Gateway::start(format!("upstream: app\nupstreams:\n  app: {{servers: [\"{server}\"], {health}}}"));
        move |expected: u16| {
            eventually("the check has an effect", || gateway.get("/").host("app.test").status() == expected);
        }
    };
    status("")(503);
    status(", host: app.test")(200);
}

/// The queue of the socket takes two connections, and one is accepted at a time.
#[test]
fn requests_wait_for_a_place_in_the_queue_of_a_socket() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("app.sock");
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
    socket.bind(&SockAddr::unix(&path).expect("a path")).expect("a free path");
    socket.listen(1).expect("a queue");
    let listener = UnixListener::from(std::os::fd::OwnedFd::from(socket));
    let gateway = Gateway::start(format!("upstream: http://unix:{}", path.display()));
    thread::scope(|scope| {
        let clients = [(); 40].map(|()| scope.spawn(|| gateway.get("/").status()));
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            for mut stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(&stream).lines();
                let _head: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                stream.write_all(b"HTTP/1.1 204 Fine\r\nConnection: close\r\n\r\n").expect("an answer");
            }
        });
        assert_eq!(clients.map(|client| client.join().expect("no panic here")), [204; 40]);
    });
}
