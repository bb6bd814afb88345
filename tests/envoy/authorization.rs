//! Envoy asks with `ext_authz`.

use std::thread;
use std::time::Duration;

use crate::rig::Rig;
use crate::support::Origin;

const FILE: &str = "envoy-ext-authz.yaml";

#[test]
fn the_body_names_the_account() {
    let rules = "server: {inspect_body: 1KiB}\nroutes: [{name: login, match: POST /login, limits: \
                 [{name: account, key: param.username, rate: 1/hour}]}]";
    let rig = Rig::new(FILE, Origin::start(), rules);
    let login = |from: &str, name: &str| {
        rig.request("POST", "/login").from(from).form(&format!("username={name}&password=x")).status()
    };
    assert_eq!(login("127.0.0.5", "alice"), 200);
    assert_eq!(login("127.0.0.6", "Alice"), 429);
    assert_eq!(login("127.0.0.6", "bob"), 200);
    let long = format!("{}&username=carol", "x".repeat(100_000));
    assert_eq!(rig.request("POST", "/login").from("127.0.0.5").form(&long).status(), 200);
    assert_eq!(rig.request("POST", "/login").from("127.0.0.6").form(&long).status(), 429, "the name is out of sight");
    assert_eq!(rig.origin.requests().iter().filter(|received| received.body.len() == long.len()).count(), 1);
}

#[test]
fn a_name_behind_a_full_buffer_is_no_way_around_a_limit() {
    let rules =
        "routes: [{name: login, match: POST /login, limits: [{name: account, key: param.username, rate: 2/hour}]}]";
    let rig = Rig::new(FILE, Origin::start(), rules);
    // What Envoy sends along at most, with a name of its own; the rest comes after Envoy has asked.
    let guess = |number: usize, is_chunked: bool| {
        let start = format!("username=name{number}&pad=");
        let start = format!("{start}{}", "y".repeat(65_536 - start.len()));
        let rest = "&username=alice";
        let login = rig.request("POST", "/login").from("127.0.0.5");
        let login = login.header("Content-Type", "application/x-www-form-urlencoded");
        let (login, start, rest) = if is_chunked {
            let login = login.header("Transfer-Encoding", "chunked");
            (login, format!("10000\r\n{start}\r\n"), format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()))
        } else {
            let length = (start.len() + rest.len()).to_string();
            (login.header("Content-Length", &length), start, rest.to_owned())
        };
        let mut connection = login.connect();
        connection.send(login.bytes()).send(start);
        // Long enough for Envoy to have asked, on most machines: that it has not is no failure of this test.
        thread::sleep(Duration::from_millis(150));
        connection.send(rest);
        connection.response().status
    };
    let statuses: Vec<u16> = (0..8).map(|number| guess(number, number % 2 == 0)).collect();
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429, 429, 429]);
    assert_eq!(rig.reached("/login"), 2);
}

#[test]
fn the_application_does_not_see_the_cookies_of_the_gateway() {
    let rules = "routes: [{name: login, match: POST /login, outcome: {success: {status: 302}}, known_clients: {of: param.username, by: cookie}, limits: \
                 [{name: pace, key: client_ip, rate: 5/minute, unless: [known_client]}]}]";
    let rig = Rig::new(FILE, Origin::start(), rules);
    let cookies = "a=1; portcullis_device_x=2; b=3";
    assert_eq!(rig.request("POST", "/login").header("Cookie", cookies).form("username=a").status(), 200);
    assert_eq!(rig.origin.last().header("cookie"), Some("a=1; b=3"));
    assert_eq!(rig.request("GET", "/").header("Cookie", "portcullis_device_x=2").status(), 200);
    assert_eq!(rig.origin.last().header("cookie"), None);
}
