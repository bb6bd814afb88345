//! The store settles each outcome exactly once, whatever the client and the application do.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use crate::http2::{ask, over_http2};
use crate::outcome::outcomes;
use crate::support::{Answer, Gateway, Origin, Request, eventually, until};

/// A login form: 302 for the right password, 401 for others, each after a while.
fn login_form(delay: Duration) -> Origin {
    Origin::answering(move |received| {
        let is_right = received.text().contains("password=right");
        let answer =
            if is_right { Answer::new(302, &[("Location", "/account")], "") } else { Answer::new(401, &[], "no") };
        answer.after(delay)
    })
}

/// `/login` with failures counted by client, and whatever else.
fn guarded(upstream: &str, limit: &str, rest: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: {upstream}\nroutes:\n  - name: login\n    match: /login\n    outcome: {{success: {{status: 302}}}}\n    \
         limits:\n      - {{name: failures, key: client_ip, count: failures, {limit}}}\n{rest}\n"
    ))
}

fn guess(gateway: &Gateway) -> Request {
    gateway.post("/login").form("password=wrong")
}

fn right(gateway: &Gateway) -> Request {
    gateway.post("/login").form("password=right")
}

const A_WHILE: Duration = Duration::from_millis(300);

/// How an application answers.
type Answering = fn() -> Answer;

#[test]
fn ten_parallel_guesses_at_a_limit_of_three_reach_the_application_three_times() {
    let origin = login_form(A_WHILE);
    let gateway = guarded(&origin.url(), "rate: 3/hour", "");
    let barrier = Barrier::new(10);
    let answers: Vec<_> = thread::scope(|scope| {
        let run = || {
            barrier.wait();
            guess(&gateway).send()
        };
        let running: Vec<_> = (0..10).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| thread.join().expect("no client fails")).collect()
    });
    let count = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(401), count(429), origin.count()), (3, 7, 3));
    let early = answers.iter().find(|answer| answer.status == 429).expect("a denial");
    assert_eq!(early.header("retry-after"), Some("1"), "slots may come back at any moment");
    let late = guess(&gateway).send();
    assert!(late.header("retry-after").is_some_and(|wait| wait.len() > 3), "{:?}", late.header("retry-after"));
}

#[test]
fn ten_parallel_correct_logins_are_all_let_in() {
    let origin = login_form(Duration::from_millis(50));
    let gateway = guarded(&origin.url(), "rate: 3/hour", "");
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| eventually("a login is let in", || right(&gateway).status() == 302));
        }
    });
    let statuses: Vec<_> = (0..4).map(|_| guess(&gateway).status()).collect();
    assert_eq!(statuses, [401, 401, 401, 429]);
}

#[test]
fn whoever_has_the_answer_has_the_slot_back() {
    let pages: [(&str, Answering); 4] = [
        ("empty", || Answer::new(302, &[], "")),
        ("with a length", || Answer::new(302, &[], "welcome")),
        ("in chunks", || Answer::raw("HTTP/1.1 302 F\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")),
        ("to the end", || Answer::raw("HTTP/1.1 302 F\r\n\r\nwelcome").closing()),
    ];
    for (kind, page) in pages {
        let origin = Origin::answering(move |_| page());
        let gateway = guarded(&origin.url(), "rate: 1/hour", "");
        let mut client = gateway.connect();
        for time in 0..20 {
            assert_eq!(right(&gateway).send_on(&mut client).status, 302, "{kind}, time {time}");
        }
    }
}

#[test]
fn a_client_that_hangs_up_before_the_answer_keeps_its_slot() {
    let origin = login_form(A_WHILE);
    let gateway = guarded(&origin.url(), "rate: 3/hour", "");
    for sent in 1..=3 {
        let mut client = gateway.connect();
        client.send(guess(&gateway).bytes());
        eventually("the guess is at the application", || origin.requests().len() == sent);
    }
    eventually("the guesses are settled", || outcomes(&gateway) == ["failure"; 3]);
    assert_eq!(guess(&gateway).status(), 429);
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_correct_login_whose_client_hangs_up_gives_its_slot_back() {
    let origin = login_form(A_WHILE);
    let gateway = guarded(&origin.url(), "rate: 1/hour", "");
    let mut client = gateway.connect();
    client.send(right(&gateway).bytes());
    eventually("the login is at the application", || origin.requests().len() == 1);
    drop(client);
    assert_eq!(guess(&gateway).status(), 429, "it is under way still");
    eventually("the slot is back", || guess(&gateway).status() == 401);
    assert_eq!(guess(&gateway).status(), 429);
}

#[test]
fn a_client_that_hangs_up_in_the_middle_of_the_answer_learns_nothing_and_gains_nothing() {
    let ends = ["welcome", "invalid password"];
    let asked = AtomicUsize::new(0);
    let origin = Origin::scripted(move |mut exchange| {
        while exchange.request().is_some() {
            let end = ends[asked.fetch_add(1, Ordering::SeqCst).min(1)];
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1000 + end.len());
            exchange.write(head + &"x".repeat(1000));
            exchange.pause(A_WHILE);
            exchange.write(end);
        }
    });
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - match: /login\n    outcome: {{failure: {{body: invalid}}}}\n    limits:\n      \
         - {{name: failures, key: client_ip, count: failures, rate: 1/hour}}\n",
        origin.url()
    ));
    let peek = || {
        let mut client = gateway.connect();
        client.send(guess(&gateway).bytes());
        assert!(client.head().starts_with("HTTP/1.1 200"));
    };
    peek();
    eventually("the success is settled", || outcomes(&gateway) == ["success"]);
    peek();
    assert_eq!(guess(&gateway).status(), 429);
    eventually("the failure is settled", || outcomes(&gateway) == ["success", "failure"]);
    assert_eq!(guess(&gateway).status(), 429);
    assert_eq!(origin.count(), 2);
}

#[test]
fn what_reached_the_application_and_was_not_answered_keeps_its_slot() {
    let cut = || Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nwelcome").closing();
    let slow = || Answer::ok("welcome").after(Duration::from_secs(2));
    let answers: [(&str, Answering, u16); 3] =
        [("reset", || Answer::silence(), 502), ("cut short", cut, 200), ("too slow", slow, 504)];
    for (kind, answer, status) in answers {
        let origin = Origin::answering(move |_| answer());
        let gateway = Gateway::start(format!(
            "upstream: app\nupstreams: {{app: {{servers: [{}], timeouts: {{response: 500ms}}}}}}\nroutes:\n  \
             - match: /login\n    outcome: {{failure: {{body: invalid}}}}\n    limits:\n      \
             - {{name: failures, key: client_ip, count: failures, rate: 1/hour, reset_on: success}}\n",
            origin.url()
        ));
        assert_eq!(guess(&gateway).status(), status, "{kind}");
        assert_eq!(gateway.log_line("/login")["outcome"], "unknown", "{kind}");
        assert_eq!(guess(&gateway).status(), 429, "{kind}");
    }
}

#[test]
fn what_never_reached_the_application_counts_for_nobody() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nowhere = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let gateway = guarded(&nowhere, "rate: 1/hour", "");
    for _ in 0..5 {
        assert_eq!(guess(&gateway).status(), 502);
    }
    assert_eq!(gateway.log_line("/login")["outcome"], "neither");
}

#[test]
fn a_body_that_breaks_off_under_way_keeps_its_slot_and_never_looks_whole() {
    let origin = login_form(Duration::ZERO);
    let gateway = guarded(&origin.url(), "rate: 1/hour", "");
    let mut client = gateway.connect();
    client.send("POST /login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\npassw\r\n");
    eventually("the head is at the application", || origin.count() == 1);
    drop(client);
    eventually("the body has broken off", || origin.requests().len() == 1);
    assert!(!origin.last().whole);
    eventually("it is settled", || outcomes(&gateway) == ["unknown"]);
    assert_eq!(guess(&gateway).status(), 429);
}

#[test]
fn a_success_forgets_the_failures_of_its_key() {
    let origin = login_form(Duration::ZERO);
    let gateway = guarded(&origin.url(), "rate: 3/hour, reset_on: success", "");
    let passwords = ["wrong", "wrong", "right", "wrong", "wrong", "wrong", "right"];
    let login = |password| gateway.post("/login").form(&format!("password={password}")).status();
    assert_eq!(passwords.map(login), [401, 401, 302, 401, 401, 401, 429]);
}

#[test]
fn a_success_does_not_wash_away_guesses_under_way() {
    let origin = Origin::answering(|received| {
        let is_right = received.text().contains("password=right");
        if is_right { Answer::new(302, &[], "") } else { Answer::new(401, &[], "").after(A_WHILE * 2) }
    });
    let gateway = guarded(&origin.url(), "rate: 3/hour, reset_on: success", "");
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let mut client = gateway.connect();
            client.send(guess(&gateway).bytes());
            client
        })
        .collect();
    eventually("the guesses are at the application", || origin.requests().len() == 2);
    assert_eq!(right(&gateway).status(), 302);
    drop(clients);
    eventually("the guesses are settled", || outcomes(&gateway).len() == 3);
    assert_eq!([guess(&gateway).status(), guess(&gateway).status()], [401, 429]);
}

#[test]
fn a_body_that_breaks_off_before_anything_is_sent_is_neither() {
    let origin = login_form(Duration::ZERO);
    let gateway = guarded(&origin.url(), "rate: 1/hour", "");
    for _ in 0..3 {
        let mut client = gateway.connect();
        client.send("POST /login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
        assert_eq!(client.response().status, 400);
    }
    assert_eq!(origin.count(), 0);
    assert_eq!([guess(&gateway).status(), guess(&gateway).status()], [401, 429]);
}

#[test]
fn guesses_in_one_packet_over_http2_are_counted_one_by_one_also_when_they_are_reset() {
    let origin = login_form(A_WHILE);
    let gateway = guarded(&origin.url(), "rate: 3/hour", "");
    let post = || http::Request::post("http://a/login").body(()).expect("a request");
    let wrong = || Some(Bytes::from_static(b"password=wrong"));
    let statuses = over_http2(&gateway, async |sender| {
        // Two that are given up at once, then ten.
        for sent in 1..=2 {
            let mut sender = sender.clone().ready().await.expect("a stream");
            let (response, mut upload) = sender.send_request(post(), false).expect("a request");
            upload.send_data(Bytes::from_static(b"password=wrong"), true).expect("a body");
            until("it is at the application", || origin.requests().len() >= sent).await;
            upload.send_reset(h2::Reason::CANCEL);
            drop(response);
        }
        let all: Vec<_> = (0..10).map(|_| ask(&sender, post(), wrong())).collect();
        let answers = futures_util::future::join_all(all).await;
        answers.into_iter().map(|answer| answer.expect("an answer").status.as_u16()).collect::<Vec<_>>()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 9, "{statuses:?}");
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_limit_without_room_for_failures_denies_no_success_that_is_let_in() {
    let origin = login_form(Duration::ZERO);
    let gateway = guarded(&origin.url(), "rate: 2/hour", "");
    for _ in 0..10 {
        assert_eq!(right(&gateway).status(), 302);
    }
    assert_eq!([guess(&gateway).status(), guess(&gateway).status(), guess(&gateway).status()], [401, 401, 429]);
}
