//! A login form behind several gateways on one Redis, which records when each attempt reached it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::site::{ask_admin, config, store_up};
use crate::support::{Answer, Gateway, Origin, RedisServer, Request, Stopwatch, eventually};

/// One attempt at the application, by the clock of the test.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) name: String,
    pub(super) is_right: bool,
    /// When its client began to send it, as `X-Sent` says.
    pub(super) sent: Duration,
    pub(super) arrived: Duration,
}

/// What is sent: a user name, whether the password is the right one, and how long the application takes over it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'n> {
    pub(super) name: &'n str,
    pub(super) is_right: bool,
    pub(super) takes: Duration,
}

#[derive(Debug)]
pub(super) struct Form {
    pub(super) gateways: Vec<Gateway>,
    pub(super) redis: RedisServer,
    origin: Origin,
    attempts: Arc<Mutex<Vec<Attempt>>>,
    since: Stopwatch,
}

impl Form {
    /// `/login` with an outcome, behind so many gateways; `limits` in flow style, and `more` lines of the route.
    #[track_caller]
    pub(super) fn start(gateways: usize, limits: &str, more: &str) -> Self {
        let since = Stopwatch::start();
        let attempts = Arc::<Mutex<Vec<Attempt>>>::default();
        let origin = Origin::answering({
            let attempts = Arc::clone(&attempts);
            move |received| {
                let arrived = since.elapsed();
                let fields: HashMap<_, _> = form_urlencoded::parse(&received.body).into_owned().collect();
                let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
                let number = |name: &str| field(name).parse().unwrap_or_default();
                let is_right = field("password") == "right";
                attempts.lock().expect("no panic here").push(Attempt {
                    name: field("username").to_owned(),
                    is_right,
                    sent: Duration::from_micros(number("sent")),
                    arrived,
                });
                let answer = if is_right { Answer::new(302, &[], "") } else { Answer::new(401, &[], "no") };
                answer.after(Duration::from_millis(number("takes")))
            }
        });
        let redis = RedisServer::start();
        let route = format!(
            "routes:\n  - name: login\n    match: POST /login\n    outcome: {{success: {{status: 302}}}}\n{more}    limits: [{limits}]"
        );
        let store = format!("url: \"{}\", timeout: 15s", redis.url());
        let config = config(&origin.url(), &store, "  on_failure: deny", &route);
        let gateways: Vec<_> = (0..gateways).map(|_| Gateway::start(&config)).collect();
        for gateway in &gateways {
            eventually("the gateway has found Redis", || store_up(gateway));
        }
        Self { gateways, redis, origin, attempts, since }
    }

    pub(super) fn address(&self, gateway: usize) -> SocketAddr {
        self.gateways[gateway % self.gateways.len()].address()
    }

    /// What a browser posts.
    pub(super) fn fields(&self, login: Login<'_>) -> String {
        let Login { name, is_right, takes } = login;
        let password = if is_right { "right" } else { "wrong" };
        let sent = self.since.elapsed().as_micros();
        format!("username={name}&password={password}&takes={}&sent={sent}", takes.as_millis())
    }

    pub(super) fn request(&self, gateway: usize, login: Login<'_>) -> Request {
        Request::new(self.address(gateway), "POST", "/login").form(&self.fields(login))
    }

    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().expect("no panic here").clone()
    }

    /// How many attempts have reached the application. Waits for those of which it has read the head alone.
    pub(super) fn count(&self) -> usize {
        eventually("every attempt has come whole", || self.attempts().len() == self.origin.count());
        self.attempts().len()
    }

    /// What each gateway says is left for a user name under `failures`, of its last rate.
    pub(super) fn left(&self, name: &str) -> Vec<u64> {
        let ask = |gateway: &Gateway| {
            let state = ask_admin(gateway, "GET", &format!("/api/v1/limits/failures/state?param.username={name}"));
            let state: Value = state.json();
            let rates = state["rates"].as_array().expect("rates");
            rates.last().and_then(|rate| rate["remaining"].as_u64()).expect("a number")
        };
        self.gateways.iter().map(ask).collect()
    }
}

/// A wrong password for `alice`.
pub(super) fn guess(takes: u64) -> Login<'static> {
    Login { name: "alice", is_right: false, takes: Duration::from_millis(takes) }
}

/// The right one.
pub(super) fn right(takes: u64) -> Login<'static> {
    Login { is_right: true, ..guess(takes) }
}
