//! A gateway that follows a Local API, and an application behind it.

use std::net::SocketAddr;

use serde_json::Value;

use super::engine::{Engine, KEY};
use crate::support::{Gateway, Origin, Request, eventually};

/// A client whom nobody has decided about.
pub(super) const OTHER: &str = "127.0.0.99";

#[derive(Debug)]
pub(super) struct Site {
    pub(super) gateway: Gateway,
    pub(super) origin: Origin,
}

/// The configuration of a gateway with the list `community` under `access.deny`.
pub(super) fn config(origin: &Origin, url: &str, more: &str) -> String {
    format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nlists:\n  community: {{crowdsec: {{url: \"{url}\", key_file: key, \
         every: 1s}}}}\naccess: {{deny: [community]}}\n{more}",
        origin.url()
    )
}

impl Site {
    /// Waits until the list follows the API.
    #[track_caller]
    pub(super) fn following(engine: &Engine) -> Self {
        let site = Self::at(engine.address(), KEY);
        eventually("the list follows the API", || site.said("the list `community` follows ") == 1);
        site
    }

    /// Does not wait for the API.
    #[track_caller]
    pub(super) fn at(api: SocketAddr, key: &str) -> Self {
        let origin = Origin::start();
        let config = config(&origin, &format!("http://{api}"), "");
        Self { gateway: Gateway::with_files(config, &[("key", &format!("{key}\n"))]), origin }
    }

    /// A request from that loopback address.
    pub(super) fn from(&self, client: &str) -> Request {
        self.gateway.get("/").from(client)
    }

    /// Waits until requests from there get this status.
    #[track_caller]
    pub(super) fn gets(&self, client: &str, status: u16) {
        eventually(&format!("{client} gets {status}"), || self.from(client).status() == status);
    }

    /// How many lines of the log begin with these words.
    pub(super) fn said(&self, words: &str) -> usize {
        self.gateway.log_messages().iter().filter(|line| line.starts_with(words)).count()
    }

    /// What the API of the gateway says of the list.
    #[track_caller]
    pub(super) fn list(&self) -> Value {
        self.gateway.admin_request("GET", "/api/v1/status").send().json()["lists"][0].clone()
    }

    /// A metric of the list.
    #[track_caller]
    pub(super) fn metric(&self, name: &str) -> Option<u64> {
        let metrics = self.gateway.admin_request("GET", "/metrics").send().text();
        let start = format!("{name}{{list=\"community\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
    }
}
