//! Device cookies over real sockets: which client gets one, what it is worth, and that the application never sees it.

use crate::support::{Answer, Gateway, Origin, RedisServer, Request, Response, eventually};

const PREFIX: &str = "portcullis_device_";

/// 302 for the right password.
fn application() -> Origin {
    Origin::answering(|received| {
        if received.text().contains("password=right") {
            Answer::new(
                302,
                &[("Location", "/account"), ("Set-Cookie", "session=1"), ("Set-Cookie", OF_APPLICATION)],
                "",
            )
        } else {
            Answer::new(401, &[], "wrong")
        }
    })
}

/// A device cookie from the application: it makes no client known.
const OF_APPLICATION: &str = "portcullis_device_0123456789abcdef=forged; Path=/";

/// Three attempts an hour for each user name, except for its known clients.
const GUESSES: &str = "{name: guesses, key: param.username, rate: 3/hour, unless: [known_client]}";

fn config(origin: &Origin, rest: &str, limits: &str) -> String {
    format!(
        "upstream: {}\n{rest}\nroutes:\n  - name: login\n    match: POST /login\n    outcome: {{success: {{status: 302}}}}\n    \
         known_clients: {{of: param.username, by: cookie, for: 30d}}\n    limits: [{limits}]\n",
        origin.url()
    )
}

fn attempt(gateway: &Gateway, name: &str, password: &str) -> Request {
    gateway.post("/login").form(&format!("username={name}&password={password}"))
}

/// The device cookies that an answer sets, name and value.
fn given(answer: &Response) -> Vec<String> {
    let set = answer.headers.all("set-cookie").into_iter().filter(|line| line.starts_with(PREFIX));
    set.map(|line| line.split(';').next().unwrap_or_default().to_owned()).collect()
}

/// Logs in, and answers the cookie that comes of it.
#[track_caller]
fn known(gateway: &Gateway, name: &str) -> String {
    let answer = attempt(gateway, name, "right").send();
    assert_eq!(answer.status, 302);
    let mut given = given(&answer);
    assert_eq!(given.len(), 1, "{:?}", answer.headers);
    given.remove(0)
}

/// Uses up what strangers have for a user name.
fn attack(gateway: &Gateway, name: &str) {
    eventually("the limit is exhausted", || attempt(gateway, name, "wrong").status() == 429);
}

#[track_caller]
fn is_let_in(gateway: &Gateway, name: &str, cookie: &str) -> bool {
    match attempt(gateway, name, "right").header("Cookie", cookie).status() {
        302 => true,
        429 => false,
        status => panic!("{status}"),
    }
}

#[test]
fn a_success_sets_a_cookie_and_nothing_else_does() {
    let origin = application();
    let gateway = Gateway::start(config(&origin, "", "{name: all, key: [], rate: 100/hour}"));
    let answer = attempt(&gateway, "alice", "right").send();
    let lines = answer.headers.all("set-cookie");
    let [session, device] = lines[..] else { panic!("{lines:?}") };
    assert_eq!(session, "session=1");
    let (pair, attributes) = device.split_once("; ").expect("attributes");
    assert_eq!(attributes, "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax");
    let (name, value) = pair.split_once('=').expect("a value");
    assert_eq!((name.len(), value.len()), (PREFIX.len() + 16, 82));
    assert!(!device.contains("alice") && !device.contains("login"));
    for form in ["username=alice&password=wrong", "username=&password=right", "password=right"] {
        assert_eq!(given(&gateway.post("/login").form(form).send()), [""; 0], "{form}");
    }
    let several = gateway.post("/login").form("username=alice&username=bob&password=right").send();
    assert_eq!((several.status, given(&several)), (302, vec![]));
    assert_eq!(given(&gateway.post("/elsewhere").form("username=alice&password=right").send()), [""; 0]);
}

#[test]
fn a_renewed_cookie_is_for_the_same_device_and_another_browser_has_another() {
    let origin = application();
    let gateway = Gateway::start(config(&origin, "", "{name: all, key: [], rate: 100/hour}"));
    let first = known(&gateway, "alice");
    let renewed = given(&attempt(&gateway, "alice", "right").header("Cookie", &first).send()).remove(0);
    let other = known(&gateway, "alice");
    let device = |pair: &str| pair.split_once('=').expect("a value").1[..22].to_owned();
    let name = |pair: &str| pair.split_once('=').expect("a value").0.to_owned();
    assert_eq!(device(&first), device(&renewed));
    assert_ne!(device(&first), device(&other));
    assert_eq!(name(&first), name(&other));
    // Two people on one browser do not overwrite each other.
    assert_ne!(name(&first), name(&known(&gateway, "bob")));
}

#[test]
fn the_owner_gets_in_while_the_name_is_attacked() {
    let origin = application();
    let gateway = Gateway::start(config(&origin, "", GUESSES));
    let cookie = known(&gateway, "alice");
    attack(&gateway, "alice");
    assert!(!is_let_in(&gateway, "alice", "session=1"));
    for _ in 0..5 {
        assert!(is_let_in(&gateway, "alice", &format!("session=1; {cookie}; theme=dark")));
    }
    // The same spelling counts as the same name.
    assert!(is_let_in(&gateway, "+ALICE", &cookie));
    attack(&gateway, "bob");
    assert!(!is_let_in(&gateway, "bob", &cookie));
    let both = gateway.post("/login").header("Cookie", &cookie).form("username=alice&username=bob&password=right");
    assert_eq!(both.status(), 429);
}

#[test]
fn what_is_not_exactly_the_cookie_is_nothing() {
    let origin = application();
    let gateway = Gateway::start(config(&origin, "", GUESSES));
    let cookie = known(&gateway, "alice");
    attack(&gateway, "alice");
    let (name, value) = cookie.split_once('=').expect("a value");
    let changed = |at: usize| {
        let other = if &value[at..=at] == "A" { "B" } else { "A" };
        format!("{name}={}{other}{}", &value[..at], &value[at + 1..])
    };
    let many = format!("{name}=x; ").repeat(300);
    for worthless in [
        &cookie[..cookie.len() - 1],
        &format!("{cookie}A"),
        &format!("{name}="),
        &format!("{name}={}", "A".repeat(82)),
        &format!("{name}={}", "A".repeat(20_000)),
        &format!("{name}=\"{value}\""),
        &format!("{}={value}", name.to_uppercase()),
        &format!("{PREFIX}0123456789abcdef={value}"),
        &many,
        OF_APPLICATION,
    ] {
        assert!(!is_let_in(&gateway, "alice", worthless), "{worthless}");
    }
    for at in (0..value.len()).step_by(7) {
        assert!(!is_let_in(&gateway, "alice", &changed(at)), "{at}");
    }
    assert!(is_let_in(&gateway, "alice", &format!("{many}{cookie}")));
}

#[test]
fn the_application_sees_no_device_cookie() {
    let origin = application();
    let gateway = Gateway::start(config(&origin, "", GUESSES));
    let cookie = known(&gateway, "alice");
    let seen = |request: Request| -> Vec<String> {
        request.send();
        let received = origin.requests().pop().expect("a request");
        received.headers.all("cookie").into_iter().map(str::to_owned).collect()
    };
    let ask =
        |lines: &[&str]| lines.iter().fold(attempt(&gateway, "alice", "right"), |ask, line| ask.header("Cookie", line));
    assert_eq!(seen(ask(&[&format!("a=1; {cookie}; b=2")])), ["a=1; b=2"]);
    assert_eq!(seen(ask(&[&cookie])), [""; 0]);
    assert_eq!(seen(ask(&["a=1", &cookie, "b=2"])), ["a=1", "b=2"]);
    // On every other route as well.
    assert_eq!(seen(gateway.get("/").header("Cookie", &format!("{cookie};a=1"))), ["a=1"]);
    assert!(origin.requests().iter().all(|received| !received.head.contains(PREFIX)));
    // It never sets one either.
    let answer = attempt(&gateway, "alice", "right").send();
    assert!(!answer.headers.all("set-cookie").iter().any(|line| line.contains("forged")));
}

#[test]
fn behind_a_proxy_that_speaks_tls_the_cookie_is_secure() {
    let origin = application();
    let trusting = config(&origin, "client_ip: {trusted_proxies: [127.0.0.1/32]}", GUESSES);
    let gateway = Gateway::start(trusting);
    let is_secure = |proto: &str| {
        let answer = attempt(&gateway, "alice", "right").header("X-Forwarded-Proto", proto).send();
        answer.headers.all("set-cookie").iter().any(|line| line.starts_with(PREFIX) && line.ends_with("; Secure"))
    };
    assert!(is_secure("https"));
    assert!(!is_secure("http"));
    let gateway = Gateway::start(config(&origin, "", GUESSES));
    let answer = attempt(&gateway, "alice", "right").header("X-Forwarded-Proto", "https").send();
    assert!(!answer.headers.all("set-cookie").iter().any(|line| line.ends_with("Secure")), "anyone can say so");
}

#[test]
fn the_head_waits_for_what_the_page_says_and_the_page_comes_whole() {
    let filler = "x".repeat(20_000);
    let page = format!("{filler} welcome {filler}");
    let origin = Origin::scripted(move |mut exchange| {
        while let Some(received) = exchange.request() {
            let page = if received.text().contains("password=right") {
                page.clone()
            } else {
                page.replace("welcome", "wrong")
            };
            let head = if received.target.contains("chunked") {
                "Transfer-Encoding: chunked".to_owned()
            } else {
                format!("Content-Length: {}", page.len())
            };
            exchange.write(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n"));
            for part in page.as_bytes().chunks(9_000) {
                if received.target.contains("chunked") {
                    exchange.write([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
                } else {
                    exchange.write(part);
                }
            }
            if received.target.contains("chunked") {
                exchange.write("0\r\n\r\n");
            }
        }
    });
    let config = config(&origin, "", "{name: all, key: [], rate: 100/hour}");
    let gateway = Gateway::start(config.replace("{status: 302}", "{body: welcome}"));
    for target in ["/login", "/login?chunked"] {
        for (password, word, cookies) in [("right", "welcome", 1), ("wrong", "wrong", 0)] {
            let form = format!("username=alice&password={password}");
            let answer = gateway.post(target).form(&form).send();
            assert_eq!((answer.status, given(&answer).len()), (200, cookies), "{target} {password}");
            assert_eq!(answer.text(), format!("{filler} {word} {filler}"), "{target}");
        }
    }
}

#[test]
fn every_gateway_of_a_redis_knows_the_device_and_so_does_a_new_one() {
    let redis = RedisServer::with_options(&["--requirepass", "s3cret"]);
    let origin = application();
    let store = format!("store: {{redis: {{url: \"redis://:s3cret@{}/0\", timeout: 5s}}}}", redis.address());
    let mut one = Gateway::start(config(&origin, &store, GUESSES));
    let other = Gateway::start(config(&origin, &store, GUESSES));
    let cookie = known(&one, "alice");
    attack(&one, "alice");
    assert!(is_let_in(&other, "alice", &cookie));
    assert!(!is_let_in(&other, "alice", &cookie.replace('=', "=A")));
    one.restart();
    assert!(is_let_in(&one, "alice", &cookie));
    assert!(!is_let_in(&one, "alice", "a=1"));
}

#[test]
fn a_gateway_alone_signs_anew_after_a_restart() {
    let origin = application();
    let mut gateway = Gateway::start(config(&origin, "", GUESSES));
    let cookie = known(&gateway, "alice");
    gateway.restart();
    attack(&gateway, "alice");
    assert!(!is_let_in(&gateway, "alice", &cookie));
}
