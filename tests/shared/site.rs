//! An application, a Redis, and gateways in front of the application.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::state;
use crate::support::{Caller, Gateway, Ledger, RedisServer, Request, Response, eventually};

/// What every key of these tests begins with: none of it may be found in Redis.
pub(super) const RAW: &str = "raw-value";

/// How long a decision waits for Redis where failures are measured: the default.
pub(super) const TIMEOUT: Duration = Duration::from_millis(100);

/// Held by each test that keeps cores busy or measures a span: beside another one no span would mean anything.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Held instead by a test whose gateways are at rest while it waits for seconds. One such test at a time runs beside the
/// others, and does not disturb them.
pub(super) fn at_rest() -> MutexGuard<'static, ()> {
    static AT_REST: Mutex<()> = Mutex::new(());
    AT_REST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// At its end, what is left in Redis is looked through.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) gateways: Vec<Gateway>,
    pub(super) application: Ledger,
    pub(super) redis: RedisServer,
    config: String,
    /// The most that a key counts.
    pub(super) most: usize,
}

impl Site {
    /// `store` are lines of that section beside `redis`; `rest` are whole sections.
    #[track_caller]
    pub(super) fn start(gateways: usize, redis: &str, store: &str, rest: &str) -> Self {
        Self::on(RedisServer::start(), gateways, redis, store, rest)
    }

    #[track_caller]
    pub(super) fn on(server: RedisServer, gateways: usize, redis: &str, store: &str, rest: &str) -> Self {
        let application = Ledger::start();
        let redis = format!("url: \"{}\", {redis}", server.url());
        let config = config(&application.url(), &redis, store, rest);
        let mut site = Self { gateways: Vec::new(), application, redis: server, config, most: 100 };
        for _ in 0..gateways {
            site.add(&[]);
        }
        site
    }

    /// One more gateway with the same configuration.
    #[track_caller]
    pub(super) fn add(&mut self, environment: &[(&str, &str)]) {
        let gateway = Gateway::in_environment(&self.config, &[], environment);
        eventually("the gateway has found Redis", || store_up(&gateway));
        self.gateways.push(gateway);
    }

    /// The same while Redis is away.
    #[track_caller]
    pub(super) fn add_without_redis(&mut self) {
        self.gateways.push(Gateway::start(&self.config));
    }

    /// One request on a connection of its own.
    pub(super) fn status(&self, gateway: usize, target: &str, key: &str) -> u16 {
        let address = self.gateways[gateway].address();
        Caller::default().call(address, target, key, self.application.clock()).expect("the gateway answers")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            state::is_clean(&self.redis, self.most);
        }
    }
}

/// A configuration with an admin listener, whose store is a Redis. Without `nodes` in `store` each gateway holds the whole from its
/// first moment on, for which others would wait 2 s.
pub(super) fn config(upstream: &str, redis: &str, store: &str, rest: &str) -> String {
    let nodes = if store.contains("nodes:") { "" } else { "\n  nodes: 1" };
    let store = format!("{store}{nodes}");
    let log = "log: {level: info, format: json, requests: false}";
    let admin = "admin: {address: 127.0.0.1:0}";
    format!("upstream: {upstream}\n{admin}\n{log}\nstore:\n  redis: {{{redis}}}\n{store}\n{rest}\n")
}

/// The URL of a user who may do everything but publish.
#[track_caller]
pub(super) fn url_of_mute(redis: &RedisServer) -> String {
    let rights = ["ACL", "SETUSER", "mute", "on", ">any", "~*", "&*", "+@all", "-publish"];
    assert_eq!(redis.cli(&rights), "OK");
    redis.url().replace("redis://", "redis://mute:any@")
}

pub(super) fn ask_admin(gateway: &Gateway, method: &str, path: &str) -> Response {
    gateway.admin_request(method, path).send()
}

/// Whether the gateway says, in metrics and on `/readyz`, that Redis answers. They never contradict each other for long.
pub(super) fn store_up(gateway: &Gateway) -> bool {
    store_up_at(gateway.admin())
}

pub(super) fn store_up_at(admin: SocketAddr) -> bool {
    let metrics = Request::new(admin, "GET", "/metrics").send().text();
    let up = metrics.lines().find(|line| line.starts_with("portcullis_store_up") && line.contains("redis"));
    up.is_some_and(|line| line.ends_with(" 1"))
}

/// The log messages of the gateway about Redis, in order, without the address at the start.
pub(super) fn said_of_redis(gateway: &Gateway) -> Vec<String> {
    let said = gateway.log_messages().into_iter().filter(|sentence| sentence.to_ascii_lowercase().contains("redis"));
    said.filter(|sentence| !sentence.starts_with("counts are kept in")).collect()
}

/// The operational log as JSON.
pub(super) fn log(gateway: &Gateway) -> Vec<Value> {
    gateway.stderr().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
