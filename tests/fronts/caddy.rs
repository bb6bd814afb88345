//! Caddy with `config/with/Caddyfile`.

use std::fs;
use std::process::Command;

use crate::proxies;
use crate::proxies::{Asking, Ready};

const FILE: &str = include_str!("../../config/with/Caddyfile");

fn caddy(text: &str) -> Asking {
    let ready =
        Ready { text, listen: "http://:80", listen_on: |address| format!("http://:{}", address.port()), files: &[] };
    proxies::start(&ready, proxies::RULES, |folder, _| {
        // Its admin listener has the same port everywhere.
        fs::write(folder.join("Caddyfile"), "{\n\tadmin off\n}\nimport ready\n").expect("a file in the folder");
        let mut command = Command::new("caddy");
        command.args(["run", "--config", "Caddyfile"]);
        // It keeps what it knows in folders of its user.
        command.env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
        command
    })
}

#[test]
fn caddy_asks_about_every_request() {
    let mut caddy = caddy(FILE);
    caddy.check_sixth_login();
    caddy.check_forged();
    caddy.check_dropped();
    caddy.check_websocket();
    caddy.check_targets();
    caddy.check_many_at_once();
    caddy.check_delay();
    caddy.check_closed_without_gateway();
}

#[test]
fn caddy_gives_up_on_a_gateway_that_hangs() {
    let caddy = caddy(&proxies::replaced(FILE, "response_header_timeout 60s", "response_header_timeout 1s"));
    caddy.check_closed_while_the_gateway_hangs(504);
}
