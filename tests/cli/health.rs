//! `portcullis health`.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::thread;

use crate::command::Folder;
use crate::command::unused_address;
use crate::support::Gateway;

const CONFIG: &str = "admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\n";

#[test]
fn a_gateway_that_runs_is_well() {
    let gateway = Gateway::start(CONFIG);
    let ended = Folder::empty().run(&["health", "--admin", &format!("http://{}", gateway.admin())]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "ok\n"), "{ended:?}");
}

#[test]
fn the_address_may_come_from_a_configuration() {
    let gateway = Gateway::start(CONFIG);
    let config =
        format!("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nadmin: {{address: {}}}\n", gateway.admin());
    let ended = Folder::with(&config).run(&["health", "-c", "portcullis.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn where_nobody_answers_the_gateway_is_unreachable() {
    let ended = Folder::empty().run(&["health", "--admin", &format!("http://{}", unused_address())]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("could not be reached"), "{ended:?}");
}

#[test]
fn what_answers_anything_else_is_not_well() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let ended = Folder::empty().run(&["health", "--admin", &format!("http://{address}")]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    server.join().unwrap();
}

#[test]
fn an_address_that_is_none_is_wrong_input() {
    assert_eq!(Folder::empty().run(&["health", "--admin", "https://127.0.0.1:1"]).code, Some(1));
    let ended =
        Folder::with("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\n").run(&["health", "-c", "portcullis.yaml"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("no `admin` section"), "{ended:?}");
}
