//! Which requests are sent to the application again, and which never are.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Answer, Gateway, Origin};

/// Dies without a word on the first so many requests.
fn dying(times: usize) -> Origin {
    let asked = AtomicUsize::new(0);
    Origin::answering(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        earlier if earlier < times => Answer::silence(),
        _ => Answer::ok("alive"),
    })
}

fn before(origin: &Origin) -> Gateway {
    Gateway::start(format!("upstream: {}", origin.url()))
}

#[test]
fn a_request_of_which_nothing_was_sent_goes_to_the_next_server() {
    let origin = Origin::start();
    let dead = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [http://{dead}, {}], balance: round_robin}}",
        origin.url()
    ));
    for number in 0..6 {
        assert_eq!(gateway.post("/").form(&format!("n={number}")).status(), 200);
        assert_eq!(gateway.get("/").status(), 200);
    }
    assert_eq!(origin.count(), 12);
    assert_eq!(origin.requests()[10].text(), "n=5");
}

#[test]
fn a_get_is_not_sent_a_third_time() {
    let origin = dying(usize::MAX);
    let gateway = before(&origin);
    assert_eq!(gateway.get("/").status(), 502);
    assert_eq!(origin.count(), 2);
}

#[test]
fn an_answer_that_has_begun_is_not_asked_for_again() {
    let origin = Origin::answering(|_| Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").closing());
    let gateway = before(&origin);
    assert!(!gateway.get("/").send().whole);
    assert_eq!(origin.count(), 1);
    let origin = Origin::answering(|_| Answer::raw("HTTP/1.1 2").closing());
    let gateway = before(&origin);
    assert_eq!(gateway.get("/").status(), 502);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_retry_is_charged_once() {
    let origin = dying(1);
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: two, key: client_ip, rate: 2/hour}}", origin.url()));
    let statuses: Vec<u16> = (0..3).map(|_| gateway.get("/").status()).collect();
    assert_eq!(statuses, [200, 200, 429]);
}
