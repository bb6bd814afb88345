//! Sessions over real sockets: who is signed in, whose a success is, and what ends a session.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::outcome::outcomes;
use crate::support::{Answer, Gateway, Origin, Received, RedisServer, Request, Response, eventually};

/// An application with accounts whose password is `right`. It knows who is signed in by a cookie `sid`, or by a cookie
/// `remember` that it never ends.
struct Application {
    sessions: Mutex<HashMap<String, String>>,
    next: AtomicUsize,
    /// Passwords that it has judged, by user name.
    judged: Mutex<Vec<String>>,
}

impl Application {
    /// An origin whose sign-in sends on those who are signed in already, as many do.
    fn start() -> Origin {
        let application = Self { sessions: Mutex::default(), next: AtomicUsize::new(1), judged: Mutex::default() };
        Origin::answering(move |received| application.answer(received))
    }

    fn answer(&self, received: &Received) -> Answer {
        let path = received.target.split('?').next().unwrap_or_default();
        let sid = cookie(received, "sid");
        let user = sid.as_ref().and_then(|sid| self.sessions.lock().unwrap().get(sid).cloned());
        let remembered = cookie(received, "remember");
        match path {
            "/login"
                if let Some(user) = &user
                    && received.target.contains("renew") =>
            {
                to_account(&[self.sign_in(user)])
            }
            "/login" if user.is_some() => to_account(&[]),
            "/login" if let Some(user) = remembered => to_account(&[self.sign_in(&user)]),
            "/login" => self.judge(received),
            "/logout" => Answer::new(
                302,
                &[("Set-Cookie", "sid=; Path=/; Max-Age=0"), ("Set-Cookie", "remember=; Max-Age=0")],
                "",
            ),
            "/renew" => to_account(&[self.sign_in(&user.unwrap_or_default())]),
            "/token" => self.token(received),
            _ => Answer::ok(user.unwrap_or_default()),
        }
    }

    fn judge(&self, received: &Received) -> Answer {
        let (name, password) = (field(received, "username"), field(received, "password"));
        self.judged.lock().unwrap().push(name.clone());
        if password != "right" {
            return Answer::new(200, &[("Set-Cookie", "csrf=1")], "wrong");
        }
        let mut cookies = vec![self.sign_in(&name)];
        if field(received, "remember") == "1" {
            cookies.push(format!("remember={name}"));
        }
        to_account(&cookies)
    }

    fn token(&self, received: &Received) -> Answer {
        if field(received, "password") != "right" {
            return Answer::new(401, &[], "{}");
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let body = format!(r#"{{"access_token": "token-{number}", "expires": 60}}"#);
        Answer::new(200, &[("Content-Type", "application/json")], body)
    }

    fn sign_in(&self, user: &str) -> String {
        let sid = format!("s{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.sessions.lock().unwrap().insert(sid.clone(), user.to_owned());
        format!("sid={sid}; Path=/; HttpOnly")
    }
}

fn to_account(cookies: &[String]) -> Answer {
    let mut headers = vec![("Location", "/account")];
    headers.extend(cookies.iter().map(|cookie| ("Set-Cookie", cookie.as_str())));
    Answer::new(302, &headers, "")
}

fn cookie(received: &Received, name: &str) -> Option<String> {
    let pairs = received.header("cookie").unwrap_or_default().split("; ").map(str::to_owned);
    let pairs: Vec<_> = pairs.collect();
    pairs.iter().find_map(|pair| pair.strip_prefix(&format!("{name}="))).map(str::to_owned)
}

fn field(received: &Received, name: &str) -> String {
    let text = received.text();
    let body = text.rsplit("\r\n\r\n").next().unwrap_or_default();
    let pair = body.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    pair.unwrap_or_default().to_owned()
}

/// The sign-in, with these keys under `sessions`, and pages that are limited by user.
fn config(origin: &Origin, top: &str, sessions: &str) -> String {
    format!(
        "upstream: {}\n{top}\nroutes:\n  - name: login\n    match: POST /login\n    \
         outcome: {{success: {{status: 302, header: {{location: \"/account*\"}}}}}}\n    \
         sessions: {{of: param.username, {sessions}}}\n    \
         limits:\n      - {{name: failures, key: param.username, rate: 3/hour, count: failures, reset_on: success}}\n  \
         - match: /page/*\n    limits:\n      - {{name: pages, key: user, rate: 2/hour, missing: skip}}\n  \
         - match: /strict/*\n    limits:\n      - {{name: strict, key: user, rate: 2/hour}}\n",
        origin.url()
    )
}

const COOKIES: &str = "cookies: [sid, remember]";

fn sign_in(gateway: &Gateway, name: &str, password: &str) -> Request {
    gateway.post("/login").form(&format!("username={name}&password={password}"))
}

/// The cookies that an answer sets, as a browser sends them back.
fn given(answer: &Response) -> String {
    let set = answer.headers.all("set-cookie").into_iter();
    let pairs: Vec<_> = set.map(|line| line.split(';').next().unwrap_or_default().to_owned()).collect();
    pairs.join("; ")
}

#[track_caller]
fn signed_in(gateway: &Gateway, name: &str) -> String {
    let answer = sign_in(gateway, name, "right").send();
    assert_eq!(answer.status, 302);
    given(&answer)
}

/// How many of some requests with these cookies pass, on pages where a person has two and nobody has a limit.
fn pages(gateway: &Gateway, cookies: &str) -> usize {
    let asks = (0..6).map(|_| gateway.get("/page/1").header("Cookie", cookies).status());
    asks.filter(|status| *status == 200).count()
}

#[test]
fn a_person_is_counted_by_account_whatever_the_browser() {
    let origin = Application::start();
    let gateway = Gateway::start(config(&origin, "", COOKIES));
    let (first, second, bob) = (signed_in(&gateway, "alice"), signed_in(&gateway, "ALICE"), signed_in(&gateway, "bob"));
    assert_eq!(gateway.get("/page/1").header("Cookie", &first).status(), 200);
    assert_eq!(gateway.get("/page/1").header("Cookie", &format!("a=b; {second}")).status(), 200);
    assert_eq!(gateway.get("/page/1").header("Cookie", &first).status(), 429);
    assert_eq!(gateway.get("/page/1").header("Cookie", &second).status(), 429);
    assert_eq!(pages(&gateway, &bob), 2);
    assert_eq!(pages(&gateway, "sid=unknown"), 6);
    assert_eq!(gateway.get("/page/1").header("Cookie", &format!("{bob}; {first}")).status(), 429);
}

#[test]
fn a_session_that_was_renewed_resets_no_failures_of_another() {
    let several = (0..17).map(|number| format!("sid={number}; ")).collect::<Vec<_>>().concat();
    for case in ["of two accounts", "signed out", "behind other values", "of a name in doubt"] {
        let origin = Application::start();
        let gateway = Gateway::start(config(&origin, "", COOKIES));
        let get = |path: &str, cookies: &str| gateway.get(path).header("Cookie", cookies).send();
        let (mallory, eve) = (signed_in(&gateway, "mallory"), signed_in(&gateway, "eve"));
        let renewed = match case {
            "of two accounts" => get("/renew", &format!("{mallory}; {eve}")),
            "signed out" => {
                assert_eq!(get("/logout", &mallory).status, 302);
                get("/renew", &mallory)
            }
            "of a name in doubt" => sign_in(&gateway, "mallory&username=eve", "right").send(),
            _ => get("/renew", &format!("{several}{mallory}")),
        };
        let renewed = given(&renewed);
        let guess = || sign_in(&gateway, "alice", "wrong").status();
        assert_eq!((guess(), guess()), (200, 200));
        let sly = gateway.post("/login?renew=1").header("Cookie", &renewed).form("username=alice&password=x");
        assert_eq!(sly.status(), 302, "{case}");
        assert_eq!(guess(), 429, "{case}");
    }
}

#[test]
fn decoys_hide_no_session() {
    let origin = Application::start();
    let gateway = Gateway::start(config(&origin, "", COOKIES));
    let alice = signed_in(&gateway, "alice");
    let decoys = |name: &str, many| (0..many).map(|number| format!("{name}={number}; ")).collect::<Vec<_>>().concat();
    let asks = |target: &str, many, name| {
        let asked = (0..6).map(|_| gateway.get(target).header("Cookie", &format!("{}{alice}", decoys(name, many))));
        asked.filter(|ask| ask.status() == 200).count()
    };
    assert_eq!(asks("/page/1", 5, "sid"), 2);
    assert_eq!(asks("/page/1", 40, "other"), 0, "the account has none left");
    assert_eq!(asks("/strict/1", 40, "sid"), 2, "what is not looked up shares the budget of nobody");
    assert_eq!(gateway.get("/strict/1").status(), 429);
}

#[test]
fn a_forged_success_is_a_failure() {
    let origin = Application::start();
    let gateway = Gateway::start(config(&origin, "", COOKIES));
    let mallory = signed_in(&gateway, "mallory");
    let mut judged = 0;
    for number in 0..20 {
        let guess = sign_in(&gateway, "victim", "guess").from(&format!("127.0.1.{number}")).status();
        judged += usize::from(guess == 200);
        let forged = sign_in(&gateway, "victim", "x").header("Cookie", &mallory).from(&format!("127.0.2.{number}"));
        forged.status();
    }
    assert_eq!(judged, 2, "two guesses and a forged success are three failures");
    assert_eq!(sign_in(&gateway, "victim", "right").status(), 429);
}

/// The application does not look at the host, and a client names any.
#[test]
fn a_session_is_one_at_every_host() {
    let origin = Application::start();
    let of_host = config(&origin, "", COOKIES).replace("of: param.username", "of: [host, param.username]");
    let gateway = Gateway::start(of_host);
    let mallory = signed_in(&gateway, "mallory");
    for number in 0..3 {
        let forged = sign_in(&gateway, "victim", "x").host(&format!("{number}.test")).header("Cookie", &mallory);
        assert_eq!(forged.status(), 302);
    }
    assert_eq!(sign_in(&gateway, "victim", "right").status(), 429);
    let elsewhere = |number| gateway.get("/page/1").host(&format!("{number}.test")).header("Cookie", &mallory);
    assert_eq!([1, 2, 3].map(|number| elsewhere(number).status()), [200, 200, 429]);
}

#[test]
fn a_remembered_attacker_forges_no_success_with_a_cookie_that_the_gateway_has_seen_end() {
    let origin = Application::start();
    let gateway = Gateway::start(config(&origin, "", COOKIES));
    let answer = gateway.post("/login").form("username=mallory&password=right&remember=1").send();
    let cookies = given(&answer);
    let remember = cookies.split("; ").find(|pair| pair.starts_with("remember=")).expect("a cookie").to_owned();
    // The application accepts it still.
    assert_eq!(gateway.get("/logout").header("Cookie", &cookies).status(), 302);
    assert_eq!(pages(&gateway, &cookies), 6, "nobody is signed in any more");
    for _ in 0..3 {
        let forged = sign_in(&gateway, "victim", "x").header("Cookie", &remember).send();
        assert_eq!(forged.status, 302);
        assert_eq!(pages(&gateway, &given(&forged)), 6, "it is no session of the victim");
    }
    assert_eq!(sign_in(&gateway, "victim", "right").status(), 429);
    eventually("all are settled", || outcomes(&gateway) == ["success", "failure", "failure", "failure"]);
}

#[test]
fn a_success_without_a_new_session_is_a_failure() {
    let origin = Origin::answering(|_| Answer::new(302, &[("Location", "/account"), ("Set-Cookie", "csrf=2")], ""));
    let gateway = Gateway::start(config(&origin, "", COOKIES));
    let statuses: Vec<_> = (0..4).map(|_| sign_in(&gateway, "alice", "right").status()).collect();
    assert_eq!(statuses, [302, 302, 302, 429]);
    eventually("they are failures", || outcomes(&gateway) == ["failure"; 3]);
}

#[test]
fn tokens_are_sessions_of_the_bearer() {
    let origin = Application::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: token\n    match: POST /token\n    outcome: {{success: {{status: 200}}}}\n    \
         sessions: {{of: param.username, tokens: [json.access_token]}}\n    \
         limits:\n      - {{name: failures, key: param.username, rate: 3/hour, count: failures, reset_on: success}}\n  \
         - match: /api/*\n    limits:\n      - {{name: api, key: user, rate: 2/hour, missing: skip}}\n",
        origin.url()
    ));
    let token = |name: &str| {
        let answer = gateway.post("/token").form(&format!("username={name}&password=right")).send();
        answer.json()["access_token"].as_str().expect("a token").to_owned()
    };
    let passing = |token: &str| {
        let asks = (0..4).map(|_| gateway.get("/api/1").header("Authorization", &format!("bearer {token}")).status());
        asks.filter(|status| *status == 200).count()
    };
    let (first, second) = (token("alice"), token("alice"));
    assert_eq!(passing(&first), 2);
    assert_eq!(passing(&second), 0);
    assert_eq!(passing(&token("bob")), 2);
    assert_eq!(passing("unknown"), 4);
    eventually("they are successes", || outcomes(&gateway) == ["success"; 3]);
}

#[test]
fn an_answer_that_lacks_its_token_is_a_failure_and_one_that_breaks_off_before_it_keeps_its_slot() {
    let statuses = |answer: fn() -> Answer| {
        let origin = Origin::answering(move |_| answer());
        let gateway = Gateway::start(format!(
            "upstream: {}\nroutes:\n  - name: token\n    match: POST /token\n    outcome: {{success: {{status: 200}}}}\n    \
             sessions: {{of: param.username, tokens: [json.access_token]}}\n    \
             limits:\n      - {{name: failures, key: param.username, rate: 1/hour, count: failures}}\n",
            origin.url()
        ));
        let mut client = gateway.connect();
        client.send(gateway.post("/token").form("username=alice").header("Connection", "close").bytes());
        client.rest();
        let outcome = eventually_some(|| outcomes(&gateway).pop());
        (outcome, gateway.post("/token").form("username=alice").status())
    };
    assert_eq!(statuses(|| Answer::new(200, &[], r#"{"error": 1}"#).closing()), ("failure".to_owned(), 429));
    let cut = || Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"access_token\": \"x").closing();
    assert_eq!(statuses(cut), ("unknown".to_owned(), 429));
}

fn eventually_some<T>(mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    eventually("it is there", || {
        found = find();
        found.is_some()
    });
    found.expect("it was there")
}

#[test]
fn a_known_client_is_earned_by_an_own_success_alone() {
    let origin = Application::start();
    let config = config(&origin, "", COOKIES).replace(
        "    limits:\n      - {name: failures",
        "    known_clients: {of: param.username, by: cookie}\n    limits:\n      - {name: failures",
    );
    let gateway = Gateway::start(config);
    let has_device = |answer: &Response| given(answer).contains("portcullis_device_");
    let answer = sign_in(&gateway, "mallory", "right").send();
    assert!(has_device(&answer));
    let forged = sign_in(&gateway, "victim", "x").header("Cookie", &given(&answer)).send();
    assert_eq!(forged.status, 302);
    assert!(!has_device(&forged));
}

#[test]
fn a_client_that_hangs_up_is_signed_in_all_the_same() {
    let origin = Origin::answering(|_| {
        let headers = [("Location", "/account"), ("Set-Cookie", "sid=late; Path=/")];
        Answer::new(302, &headers, "").after(Duration::from_millis(200))
    });
    let redis = RedisServer::start();
    for top in [String::new(), format!("store: {{redis: {{url: \"{}\", timeout: 10s}}}}", redis.url())] {
        let gateway = Gateway::start(config(&origin, &top, COOKIES));
        let before = origin.count();
        let mut client = gateway.connect();
        client.send(sign_in(&gateway, "alice", "right").bytes());
        eventually("the application has it", || origin.count() > before);
        drop(client);
        eventually("it is settled", || outcomes(&gateway) == ["success"]);
        let is_known = |_| gateway.get("/page/1").header("Cookie", "sid=late").status() == 429;
        assert!((0..3).any(is_known), "{top}");
    }
}

#[test]
fn a_reload_keeps_sessions() {
    let origin = Application::start();
    let text = config(&origin, "", COOKIES);
    let gateway = Gateway::start(&text);
    let alice = signed_in(&gateway, "alice");
    assert_eq!(gateway.get("/page/1").header("Cookie", &alice).status(), 200);
    gateway.reload(text.replace("rate: 3/hour", "rate: 4/hour"));
    assert_eq!(pages(&gateway, &alice), 1);
}

#[test]
fn gateways_of_one_redis_know_the_same_people() {
    let origin = Application::start();
    let redis = RedisServer::start();
    let store =
        format!("store: {{redis: {{url: \"{}\", timeout: 10s}}}}\nadmin: {{address: 127.0.0.1:0}}", redis.url());
    let text = config(&origin, &store, COOKIES);
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let alice = signed_in(&one, "alice");
    // The answer is held until all have been told.
    let knows = || other.admin_request("GET", "/metrics").send().text().contains("portcullis_sessions 1\n");
    eventually("the other has read it", knows);
    assert_eq!(pages(&other, &alice), 2);
    assert_eq!(pages(&one, &alice), 0);
    // A success at the other is not the own one of another name.
    assert_eq!(sign_in(&other, "bob", "x").header("Cookie", &alice).status(), 302);
    eventually("it is a failure there", || outcomes(&other) == ["failure"]);
    let renewed = given(&other.get("/renew").header("Cookie", &alice).send());
    eventually("the renewed session is known", || one.get("/page/1").header("Cookie", &renewed).status() == 429);
    assert_eq!(one.get("/logout").header("Cookie", &renewed).status(), 302);
    eventually("it has ended", || other.get("/page/1").header("Cookie", &renewed).status() == 200);
}

#[test]
fn many_people_sign_in_at_once_and_each_is_counted_alone() {
    let origin = Application::start();
    let gateway = Gateway::start(config(&origin, "", COOKIES));
    thread::scope(|scope| {
        for worker in 0..4 {
            let gateway = &gateway;
            scope.spawn(move || {
                for number in 0..25 {
                    let name = format!("user{worker}x{number}");
                    let (first, second) = (signed_in(gateway, &name), signed_in(gateway, &name));
                    assert_eq!((pages(gateway, &first), pages(gateway, &second)), (2, 0), "{name}");
                }
            });
        }
    });
}
