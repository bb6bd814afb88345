//! Two gateways on one Redis, an application with a login, its users, and attackers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Answer, Folder, Gateway, Origin, Received, RedisServer, Request, Response, Stopwatch, eventually, found_within,
};

/// Everybody's password.
const RIGHT: &str = "right";

pub(crate) struct Night {
    pub(crate) gateways: [Gateway; 2],
    _application: Origin,
    webhook: Origin,
    _redis: RedisServer,
}

/// One request of an attacker.
pub(crate) struct Attempt {
    target: String,
    form: Option<String>,
}

impl Attempt {
    pub(crate) fn sign_in(account: &str, password: &str) -> Self {
        Self { target: "/login".to_owned(), form: Some(format!("username={account}&password={password}")) }
    }

    pub(crate) fn get(target: &str) -> Self {
        Self { target: target.to_owned(), form: None }
    }

    fn send(&self, gateway: &Gateway, source: &str, agent: &str) -> Response {
        let request = match &self.form {
            Some(form) => gateway.post(&self.target).form(form),
            None => gateway.get(&self.target),
        };
        request.from(source).header("User-Agent", agent).send()
    }
}

impl Night {
    pub(crate) fn begin() -> Self {
        let (application, redis) = (Origin::answering(application), RedisServer::start());
        let webhook = Origin::answering(|_| Answer::ok(""));
        let config = format!(
            "admin: {{address: 127.0.0.1:0}}\nlog: {{requests: false}}\nupstream: {}\n\
             store: {{redis: {{url: \"{}\", timeout: 1s}}}}\n\
             notify: {{ops: {{webhook: \"{}/hook\"}}}}\n\
             routes:\n\
             - name: login\n  match: POST /login\n\
             \x20 outcome: {{success: {{status: 302}}, failure: {{status: 401}}}}\n\
             \x20 known_clients: {{of: param.username, notify: [ops]}}\n\
             \x20 limits:\n\
             \x20 - {{name: guesses, key: param.username, rate: 20/minute, count: failures}}\n\
             \x20 - {{name: pace, key: client_ip, rate: 60/minute}}\n\
             - name: search\n  match: GET /search\n\
             \x20 limits: [{{name: search-pace, key: client_ip, rate: 60/minute}}]\n",
            application.url(),
            redis.url(),
            webhook.url(),
        );
        let gateways = [Gateway::start(&config), Gateway::start(&config)];
        let night = Self { gateways, _application: application, webhook, _redis: redis };
        eventually("the gateways know each other", || {
            (0..2).all(|gateway| night.api(gateway, "status")["gateways"].as_array().map(Vec::len) == Some(2))
        });
        night
    }

    pub(crate) fn sign_in(&self, gateway: usize, source: &str, account: &str, password: &str) -> Response {
        Attempt::sign_in(account, password).send(&self.gateways[gateway], source, "Firefox")
    }

    pub(crate) fn api(&self, gateway: usize, target: &str) -> Value {
        self.gateways[gateway].admin_request("GET", &format!("/api/v1/{target}")).send().json()
    }

    pub(crate) fn attacks(&self, gateway: usize) -> Vec<Value> {
        self.api(gateway, "attacks").as_array().expect("a list").clone()
    }

    pub(crate) fn events(&self, gateway: usize) -> Vec<Value> {
        let events = self.api(gateway, "events/recent");
        let all = events.as_array().expect("a list").iter();
        all.filter(|event| event["event"] == "signed_in_after_failures").cloned().collect()
    }

    #[track_caller]
    pub(crate) fn event_within(&self, span: Duration, gateway: usize, account: &str) -> Value {
        found_within(span, || {
            let events = self.events(gateway);
            let named = |event: &&Value| event["account"].as_str().is_some_and(|name| name.starts_with(account));
            events.iter().find(named).cloned().ok_or_else(|| format!("no event for {account}: {events:?}"))
        })
    }

    /// What the webhook was sent, once there is something.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        eventually("the webhook hears of it", || self.webhook.count() > 0);
        self.webhook.requests().iter().map(|request| serde_json::from_str(&request.text()).expect("JSON")).collect()
    }

    /// An attack that is named by either gateway.
    #[track_caller]
    pub(crate) fn named_within(&self, span: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        found_within(span, || {
            let attacks = self.attacks(1);
            attacks.iter().find(|attack| wanted(attack)).cloned().ok_or_else(|| format!("not named: {attacks:?}"))
        })
    }

    /// What `status` prints is what the API says, but for counts, which grow from one to the other.
    #[track_caller]
    pub(crate) fn verdicts_are_equal(&self, gateway: usize) {
        let without_counts = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
        let verdict = || self.api(gateway, "status")["verdict"].clone();
        // An attack has its name before it is most of the last minute.
        eventually("the verdict is an attack", || verdict()["level"] == "attack");
        let verdict = verdict();
        let printed = without_counts(&self.command(gateway, &["status"]));
        assert!(printed.contains(&without_counts(verdict["sentence"].as_str().unwrap())), "{verdict}\n{printed}");
    }

    /// Runs the command that the attack proposes.
    #[track_caller]
    pub(crate) fn ban(&self, attack: &Value) {
        let command = attack["ban"].as_str().expect("a command");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        self.command(0, &words);
    }

    #[track_caller]
    fn command(&self, gateway: usize, words: &[&str]) -> String {
        let admin = self.gateways[gateway].admin().to_string();
        let ended = Folder::empty().run(&[words, &["--admin", &admin]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    }

    pub(crate) fn metric(&self, gateway: usize, series: &str) -> u64 {
        let text = self.gateways[gateway].admin_request("GET", "/metrics").send().text();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }

    /// Twelve users, who sign in and search now and then, and mistype.
    pub(crate) fn users(&self) -> Running {
        let gateways = self.targets();
        Running::begin(12, 12, move |user, number| {
            // In the networks of the attackers too.
            let source = format!("127.{}.1.{}", 20 + user % 4, 210 + user);
            let password = if number % 3 == 0 { "mistyped" } else { RIGHT };
            let form = format!("username=user-{user}&password={password}");
            let gateway = gateways[number as usize % 2];
            Request::new(gateway, "POST", "/login").from(&source).header("User-Agent", "Firefox").form(&form).status()
        })
    }

    /// So many attempts a second, from each source in turn, on both gateways in turn.
    pub(crate) fn attack(
        &self,
        per_second: u32,
        sources: &[String],
        attempt: &(impl Fn(u32) -> Attempt + Send + Sync),
    ) -> Running {
        let attempts: Vec<Attempt> = (0..20_000).map(attempt).collect();
        let (gateways, sources) = (self.targets(), sources.to_vec());
        Running::begin(4, per_second, move |worker, number| {
            let number = number as usize * 4 + worker as usize;
            let Attempt { target, form } = &attempts[number % attempts.len()];
            let gateway = gateways[number / sources.len() % 2];
            let method = if form.is_some() { "POST" } else { "GET" };
            let mut request = Request::new(gateway, method, target).from(&sources[number % sources.len()]);
            if let Some(form) = form {
                request = request.form(form);
            }
            request.header("User-Agent", "Hydra").status()
        })
    }

    fn targets(&self) -> [std::net::SocketAddr; 2] {
        [self.gateways[0].address(), self.gateways[1].address()]
    }
}

fn application(received: &Received) -> Answer {
    if received.method != "POST" {
        return Answer::ok("found");
    }
    if received.text().ends_with(&format!("password={RIGHT}")) {
        Answer::new(302, &[("Location", "/account")], "")
    } else {
        Answer::new(401, &[], "wrong")
    }
}

/// Requests that are sent until it ends.
pub(crate) struct Running {
    is_over: Arc<AtomicBool>,
    /// How many were answered with 403, and how many otherwise.
    counts: Arc<[AtomicU64; 2]>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// `request` sends one, of a worker and with a number, and returns its status.
    fn begin(workers: u32, per_second: u32, request: impl Fn(u32, u32) -> u16 + Send + Sync + 'static) -> Self {
        let (is_over, counts, request) =
            (Arc::<AtomicBool>::default(), Arc::<[AtomicU64; 2]>::default(), Arc::new(request));
        let threads = (0..workers).map(|worker| {
            let (is_over, counts, request) = (Arc::clone(&is_over), Arc::clone(&counts), Arc::clone(&request));
            thread::spawn(move || {
                let began = Stopwatch::start();
                for number in 0.. {
                    // The rate of the attack is part of the promise.
                    let due = Duration::from_secs(1) * workers * number / per_second;
                    thread::sleep(due.saturating_sub(began.elapsed()));
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let is_banned = request(worker, number) == 403;
                    counts[usize::from(!is_banned)].fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let threads = threads.collect();
        Self { is_over, counts, threads }
    }

    fn counts(&self) -> (u64, u64) {
        (self.counts[0].load(Ordering::Relaxed), self.counts[1].load(Ordering::Relaxed))
    }

    /// How many of its requests are kept out, and how many are not, in this time.
    pub(crate) fn measured_for(&self, span: Duration) -> (u64, u64) {
        let before = self.counts();
        thread::sleep(span);
        let after = self.counts();
        (after.0 - before.0, after.1 - before.1)
    }

    /// How many of its requests were kept out in all.
    pub(crate) fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        let counts = self.counts();
        for thread in self.threads {
            thread.join().expect("the gateway answers");
        }
        counts.0
    }
}
