//! Every wait has a timeout, on both sides, and each timeout has its own status.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::support::{Answer, Gateway, Origin, Stopwatch, eventually};

const SHORT: Duration = Duration::from_millis(400);
const BOUND: Duration = Duration::from_secs(8);

fn impatient(origin: &Origin, timeouts: &str) -> Gateway {
    Gateway::start(format!("upstream: {}\nserver: {{timeouts: {{{timeouts}}}}}", origin.url()))
}

/// An address without a listener.
pub(crate) fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("bound"))
}

#[test]
fn a_silent_connection_is_closed() {
    let origin = Origin::start();
    let gateway = impatient(&origin, "header: 400ms");
    let waited = Stopwatch::start();
    let mut client = gateway.connect();
    client.rest();
    assert!((SHORT..BOUND).contains(&waited.elapsed()), "{:?}", waited.elapsed());
}

#[test]
fn half_a_head_is_closed_however_slowly_it_grows() {
    let origin = Origin::start();
    let gateway = impatient(&origin, "header: 400ms");
    let waited = Stopwatch::start();
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX: ");
    while !client.ends_within(Duration::from_millis(50)) {
        client.send("y");
        assert!(waited.elapsed() < BOUND, "the head may grow forever");
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn an_idle_connection_is_closed_after_its_keepalive_and_not_before() {
    let origin = Origin::start();
    let gateway = impatient(&origin, "keepalive: 1s, header: 300ms");
    let mut client = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut client).status, 200);
    thread::sleep(Duration::from_millis(600));
    let waited = Stopwatch::start();
    assert_eq!(gateway.get("/").send_on(&mut client).status, 200);
    assert!(client.rest().is_empty());
    assert!((Duration::from_millis(900)..BOUND).contains(&waited.elapsed()), "{:?}", waited.elapsed());
}

#[test]
fn a_body_that_makes_no_progress_ends_its_request() {
    let origin = Origin::start();
    let gateway = impatient(&origin, "body_idle: 400ms");
    let waited = Stopwatch::start();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello");
    if let Some(response) = client.try_response("POST") {
        assert_eq!(response.status, 408);
    }
    assert!(client.rest().is_empty());
    assert!((SHORT..BOUND).contains(&waited.elapsed()), "{:?}", waited.elapsed());
    eventually("the upstream request has ended", || origin.requests().len() == origin.count());
    assert!(origin.requests().iter().all(|received| !received.whole));
}

#[test]
fn a_body_that_is_inspected_is_awaited_no_longer() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nserver: {{timeouts: {{body_idle: 400ms}}}}\nlimits:\n  - {{name: user, key: param.user, rate: 9/hour}}",
        origin.url()
    ));
    let waited = Stopwatch::start();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nuser=");
    if let Some(response) = client.try_response("POST") {
        assert_eq!(response.status, 408);
    }
    assert!(client.rest().is_empty());
    assert!((SHORT..BOUND).contains(&waited.elapsed()), "{:?}", waited.elapsed());
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_body_that_goes_on_slowly_is_let_go_on() {
    let origin = Origin::start();
    let gateway = impatient(&origin, "body_idle: 1s, header: 300ms");
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
    for byte in ["a", "b", "c", "d", "e", "f"] {
        thread::sleep(Duration::from_millis(250));
        client.send(byte);
    }
    assert_eq!(client.response().status, 200);
    assert_eq!(origin.last().text(), "abcdef");
}

#[test]
fn an_application_that_does_not_answer_in_time_is_504() {
    let origin = Origin::answering(|_| Answer::ok("late").after(Duration::from_secs(3)));
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 400ms}}}}",
        origin.url()
    ));
    let waited = Stopwatch::start();
    let response = gateway.post("/late").form("a=b").send();
    assert_eq!(response.status, 504);
    assert!((SHORT..Duration::from_secs(3)).contains(&waited.elapsed()), "{:?}", waited.elapsed());
    assert!(response.header("content-type").expect("a type").starts_with("application/problem+json"));
    assert_eq!(response.json()["detail"], "The application took too long.");
    let line = gateway.log_line("/late");
    assert_eq!((line["decision"].as_str(), line["status"].as_u64()), (Some("error"), Some(504)));
    assert!(line["error"].as_str().is_some_and(|cause| !cause.is_empty()), "{line}");
}

#[test]
fn a_client_that_closes_its_side_is_answered_as_long_as_the_application_may_take() {
    let origin = Origin::answering(|received| match received.target.as_str() {
        "/late" => Answer::ok("late").after(Duration::from_millis(2500)),
        _ => Answer::ok("too late").after(Duration::from_secs(10)),
    });
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 3500ms}}}}",
        origin.url()
    ));
    // With a body, and with another request behind it, which is answered too.
    let mut client = gateway.connect();
    client.send(gateway.post("/late").form("a=b").bytes()).send(gateway.get("/late").bytes()).finish();
    assert_eq!([client.response().text(), client.response().text()], ["late", "late"]);
    assert!(client.rest().is_empty());
    let mut client = gateway.connect();
    client.send(gateway.get("/too-late").bytes()).finish();
    assert_eq!(client.response().status, 504);
    assert!(client.rest().is_empty());
}

#[test]
fn an_application_that_is_down_is_502_at_once() {
    let gateway = Gateway::start(format!("upstream: {}", nowhere()));
    let waited = Stopwatch::start();
    let response = gateway.get("/down").send();
    assert_eq!(response.status, 502);
    assert!(waited.elapsed() < Duration::from_secs(2), "{:?}", waited.elapsed());
    assert!(response.header("content-type").expect("a type").starts_with("application/problem+json"));
    assert!(!response.text().is_empty());
    let line = gateway.log_line("/down");
    assert_eq!(line["decision"], "error");
    assert!(line["error"].as_str().is_some_and(|cause| !cause.is_empty()), "{line}");
}

#[test]
fn an_application_that_comes_back_is_used_at_once() {
    let origin = Origin::start();
    let address = origin.address();
    let gateway = Gateway::start(format!("upstream: http://{address}"));
    assert_eq!(gateway.get("/").status(), 200);
    drop(origin);
    assert_eq!(gateway.get("/").status(), 502);
    let _back = Origin::start_on(address);
    assert_eq!(gateway.get("/").send().text(), "back");
}

#[test]
fn with_no_healthy_server_requests_are_503_until_one_is_back() {
    let origin = Origin::start();
    let address = origin.address();
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app:\n    servers: [http://{address}]\n    health: {{path: /healthz, every: 50ms, timeout: 1s, healthy: 1, unhealthy: 2}}"
    ));
    assert_eq!(gateway.get("/").status(), 200);
    drop(origin);
    eventually("the server is unhealthy", || gateway.get("/").status() == 503);
    let response = gateway.get("/none").send();
    assert!(response.header("content-type").expect("a type").starts_with("application/problem+json"));
    assert_eq!(gateway.log_line("/none")["decision"], "error");
    let _back = Origin::start_on(address);
    eventually("the server is healthy again", || gateway.get("/").status() == 200);
}

#[test]
fn connections_beyond_their_bound_do_not_disturb_those_that_stand() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{max_connections_per_client: 3}}", origin.url()));
    let mut standing: Vec<_> = (0..3).map(|_| gateway.connect()).collect();
    for client in &mut standing {
        assert_eq!(gateway.get("/").send_on(client).status, 200);
    }
    let mut beyond = gateway.connect();
    beyond.send(gateway.get("/").bytes());
    if let Some(response) = beyond.try_response("GET") {
        assert_eq!(response.status, 429);
    }
    for client in &mut standing {
        assert_eq!(gateway.get("/").send_on(client).status, 200);
    }
    assert_eq!(gateway.get("/").from("127.0.0.2").status(), 200);
    standing.pop();
    eventually("there is room again", || {
        let mut client = gateway.connect();
        client.send(gateway.get("/").bytes());
        client.try_response("GET").is_some_and(|response| response.status == 200)
    });
}

/// As by a debugger, or by the host of a virtual machine. What came meanwhile was in time.
#[test]
fn a_gateway_that_was_stopped_takes_what_came_meanwhile() {
    let origin = Origin::answering(|_| Answer::ok("in time").after(Duration::from_millis(150)));
    let gateway = Gateway::start(format!(
        "upstream: app\nadmin: {{address: 127.0.0.1:0}}\nserver: {{timeouts: {{header: 400ms}}}}\nupstreams:\n  \
         app: {{servers: [{}], timeouts: {{response: 400ms}}}}",
        origin.url()
    ));
    let stop = |meanwhile: &mut dyn FnMut()| {
        gateway.pause();
        meanwhile();
        gateway.pause_for(2 * SHORT);
    };
    for number in 1..=4 {
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n");
        eventually("the gateway waits for the rest", || gateway.connections() == 1);
        stop(&mut || _ = client.send("\r\n"));
        eventually("the application is asked", || origin.count() == number);
        stop(&mut || ());
        assert_eq!(client.response().text(), "in time");
        drop(client);
        eventually("the connection is closed", || gateway.connections() == 0);
    }
}

#[test]
fn a_gateway_that_was_stopped_takes_no_healthy_server_for_sick() {
    let origin = Origin::answering(|_| Answer::ok("well").after(Duration::from_millis(150)));
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app:\n    servers: [{}]\n    health: {{path: /healthz, every: 50ms, timeout: 400ms, unhealthy: 1}}",
        origin.url()
    ));
    for _ in 0..4 {
        let asked = origin.count();
        eventually("the server is asked", || origin.count() > asked);
        gateway.pause_for(2 * SHORT);
        assert_eq!(gateway.get("/").send().text(), "well");
    }
    let said = gateway.log_messages();
    assert!(!said.iter().any(|line| line.contains("unhealthy")), "{said:#?}");
}
