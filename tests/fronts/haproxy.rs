//! `HAProxy` with `config/with/haproxy.cfg` and its Lua.

use std::process::Command;

use crate::proxies;
use crate::proxies::{Asking, Ready};

const LUA: &str = include_str!("../../config/with/haproxy.lua");

fn haproxy(lua: &str) -> Asking {
    let ready = Ready {
        text: include_str!("../../config/with/haproxy.cfg"),
        listen: "0.0.0.0:80",
        listen_on: |address| address.to_string(),
        files: &[("haproxy.lua", lua)],
    };
    proxies::start(&ready, proxies::RULES, |folder, _| {
        let mut command = Command::new("haproxy");
        command.args(["-db", "-q", "-f"]).arg(folder.join("ready"));
        command
    })
}

#[test]
fn haproxy_sends_a_body_along_and_hands_headers_on() {
    let haproxy = haproxy(LUA);
    let login = |body: &str| haproxy.request("POST", "/account").form(body).send();
    let first = login("username=alice");
    assert_eq!((first.status, first.header("ratelimit-policy")), (200, Some("\"account\";q=1;w=60")));
    assert!(first.header("ratelimit").is_some());
    assert_eq!(haproxy.origin.last().header("x-request-id").map(str::len), Some(32));
    assert_eq!(login("username=alice&again=1").status, 429);
    assert_eq!(login("username=bob").status, 200);
    // What is too long to be sent along counts as missing, whatever else it says.
    let padded = |name: &str| login(&format!("username={name}&pad={}&username=mallory", "x".repeat(20_000))).status;
    assert_eq!((padded("x1"), padded("x2")), (200, 429));
}

#[test]
fn haproxy_asks_about_every_request() {
    let mut haproxy = haproxy(LUA);
    haproxy.check_sixth_login();
    haproxy.check_forged();
    haproxy.check_dropped();
    haproxy.check_websocket();
    haproxy.check_targets();
    haproxy.check_many_at_once();
    haproxy.check_delay();
    haproxy.check_closed_without_gateway();
}

#[test]
fn haproxy_gives_up_on_a_gateway_that_hangs() {
    let haproxy = haproxy(&proxies::replaced(LUA, "patience = 30000", "patience = 500"));
    haproxy.check_closed_while_the_gateway_hangs(504);
}
