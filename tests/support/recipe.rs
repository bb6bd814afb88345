//! Starts a recipe of `config/` in front of its application.

use std::fs;
use std::net::SocketAddr;

use super::gateway::Gateway;

/// A gateway with this file, whose addresses are replaced. `changes` are more texts to replace.
#[track_caller]
pub fn recipe(name: &str, application: SocketAddr, changes: &[(&str, &str)]) -> Gateway {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    let mut text = fs::read_to_string(format!("{folder}/{name}")).expect("a recipe of that name");
    let here = format!("http://{application}");
    let addresses =
        [("0.0.0.0:8080", "127.0.0.1:0"), ("127.0.0.1:9090", "127.0.0.1:0"), ("http://127.0.0.1:8000", &here)];
    for (written, wanted) in addresses.iter().chain(changes) {
        text = text.replace(written, wanted);
    }
    let page = fs::read_to_string(format!("{folder}/pages/slow-down.html")).expect("the page of the recipes");
    Gateway::with_files(text.replace("pages/slow-down.html", "slow-down.html"), &[("slow-down.html", &page)])
}
