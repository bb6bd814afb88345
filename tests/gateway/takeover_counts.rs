//! Counts in memory survive a takeover exactly, and the old process keeps serving its requests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::http2::{ask, over_http2_at};
use crate::limits::retry_after;
use crate::support::{
    Answer, Gateway, Origin, RawClient, Request, StopOnDrop, Stopwatch, eventually, repeat_until, within,
};

/// Answers wait behind it until it is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("no panic here") = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let is_open = self.0.0.lock().expect("no panic here");
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open).expect("no panic here"));
    }
}

/// What is below `/held` waits behind a gate.
pub(crate) fn gated() -> (Origin, Gate) {
    let gate = Gate::default();
    let behind = gate.clone();
    let origin = Origin::answering(move |received| {
        if received.target.starts_with("/held") {
            behind.pass();
        }
        Answer::ok("origin")
    });
    (origin, gate)
}

pub(crate) fn taken_over(gateway: &Gateway) -> Gateway {
    let next = gateway.successor();
    assert!(next.log_messages().iter().any(|line| line.starts_with("the counts of ")), "{:?}", next.log_messages());
    next
}

#[test]
fn what_was_counted_counts_after_a_takeover() {
    for rule in ["rate: 3/hour, algorithm: token-bucket", "distinct: query.page, rate: 3/hour"] {
        let origin = Origin::start();
        let config = format!("upstream: {}\nlimits: [{{name: tight, key: client_ip, {rule}}}]", origin.url());
        let mut gateway = Gateway::start(config);
        let mut statuses = Vec::new();
        for page in 0..5 {
            statuses.push(gateway.get(&format!("/?page={page}")).status());
            let next = taken_over(&gateway);
            assert_eq!(gateway.ended().code(), Some(0));
            let told = gateway.log_messages();
            assert!(!told.iter().any(|line| line.contains("is gone")), "its successor is there: {told:?}");
            gateway = next;
        }
        assert_eq!(statuses, [200, 200, 200, 429, 429], "{rule}");
    }
}

#[test]
fn takeovers_under_load_admit_exactly_what_one_process_would() {
    const MOST: usize = 600;
    let origin = Origin::answering(|received| {
        let answer = Answer::ok("origin");
        if received.target == "/slow" { answer.after(Duration::from_millis(150)) } else { answer }
    });
    let limit = format!("{{name: all, key: header.x-all, rate: {MOST} per 7 days}}");
    let mut current = Gateway::start(format!("upstream: {}\nlimits: [{limit}]", origin.url()));
    let address = current.address();
    let (over, passed, denied) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |status: u16| match status {
        200 => _ = passed.fetch_add(1, Ordering::SeqCst),
        429 => _ = denied.fetch_add(1, Ordering::SeqCst),
        other => panic!("{other}"),
    };
    thread::scope(|scope| {
        let _over = StopOnDrop(&over);
        for number in 0..12 {
            let request = Request::new(address, "GET", if number % 4 == 3 { "/slow" } else { "/" });
            let (over, count) = (&over, &count);
            scope.spawn(move || {
                let mut standing: Option<RawClient> = None;
                repeat_until(
                    || over.load(Ordering::SeqCst),
                    Duration::from_millis(20),
                    || {
                        let mut client = standing.take().unwrap_or_else(|| request.connect());
                        let response = request.send_on(&mut client);
                        count(response.status);
                        if number % 2 == 0 && response.header("connection") != Some("close") {
                            standing = Some(client);
                        }
                    },
                );
            });
        }
        for _ in 0..2 {
            let (over, count) = (&over, &count);
            scope.spawn(move || {
                let get = || http::Request::get("http://app.example/").body(()).expect("a request");
                while !over.load(Ordering::SeqCst) {
                    // To the end of the connection, or of the test.
                    over_http2_at(address, async |sender| {
                        within("the test ends", Duration::from_secs(60), async || {
                            let Ok(answer) = ask(&sender, get(), None).await else { return true };
                            count(answer.status.as_u16());
                            over.load(Ordering::SeqCst)
                        })
                        .await;
                    });
                }
            });
        }
        for _ in 0..3 {
            // Each process admits some.
            let before = passed.load(Ordering::SeqCst);
            eventually("it serves", || passed.load(Ordering::SeqCst) > before + 20);
            let next = taken_over(&current);
            assert_eq!(current.ended().code(), Some(0));
            current = next;
        }
        let begun = denied.load(Ordering::SeqCst);
        eventually("all that may has passed", || denied.load(Ordering::SeqCst) > begun + 50);
    });
    assert_eq!((passed.into_inner(), origin.count()), (MOST, MOST));
}

#[test]
fn no_window_holds_more_than_its_count_through_takeovers() {
    let (most, window) = (20, Duration::from_secs(2));
    let origin = Origin::start();
    let limit = format!("{{name: all, key: host, rate: {most} per 2 seconds}}");
    let mut current = Gateway::start(format!("upstream: {}\nlimits: [{limit}]", origin.url()));
    let address = current.address();
    let (over, clock, passed) = (AtomicBool::new(false), Stopwatch::start(), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let _over = StopOnDrop(&over);
        for _ in 0..6 {
            let (over, passed) = (&over, &passed);
            scope.spawn(move || {
                let request = Request::new(address, "GET", "/");
                repeat_until(
                    || over.load(Ordering::SeqCst),
                    Duration::from_millis(5),
                    || {
                        let sent = clock.elapsed();
                        if request.status() == 200 {
                            passed.lock().expect("no panic here").push((sent, clock.elapsed()));
                        }
                    },
                );
            });
        }
        for half in 1..=5 {
            let next = taken_over(&current);
            current.ended();
            current = next;
            eventually("half a window is over", || clock.elapsed() > half * window / 2 + window);
        }
    });
    let mut passed = passed.into_inner().expect("no panic here");
    passed.sort_by_key(|(_, answered)| *answered);
    // Each was decided between its two moments. However that was, among any so many and one that were answered one
    // after the other the last answer comes a window after the first was sent.
    for some in passed.windows(most + 1) {
        let first = some.iter().map(|(sent, _)| *sent).min().expect("some");
        let widest = some[most].1.saturating_sub(first);
        assert!(widest >= window, "{} within {widest:?}", most + 1);
    }
    assert!(passed.len() > 2 * most, "only {}", passed.len());
}

#[test]
fn guesses_that_wait_for_their_outcome_are_counted_once_through_takeovers() {
    const MOST: usize = 40;
    let wrong = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&wrong);
    let origin = Origin::answering(move |received| {
        if received.target.ends_with("right") {
            return Answer::ok("welcome").after(Duration::from_millis(30));
        }
        seen.fetch_add(1, Ordering::SeqCst);
        Answer::new(401, &[], "wrong").after(Duration::from_millis(60))
    });
    let mut current = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: login\n    match: POST /login\n    outcome: {{success: {{status: 200}}}}\n    \
         limits: [{{name: guesses, key: host, count: failures, rate: {MOST}/hour}}]",
        origin.url()
    ));
    let address = current.address();
    let (over, denied, welcome) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _over = StopOnDrop(&over);
        for number in 0..8 {
            let target = if number % 2 == 0 { "/login?right" } else { "/login?guess" };
            let request = Request::new(address, "POST", target).form("user=alice");
            let (over, denied, welcome) = (&over, &denied, &welcome);
            scope.spawn(move || {
                // Slow enough that guesses are left for each process.
                let pause = Duration::from_millis(if number % 2 == 0 { 10 } else { 200 });
                repeat_until(
                    || over.load(Ordering::SeqCst),
                    pause,
                    || match request.status() {
                        200 => _ = welcome.fetch_add(1, Ordering::SeqCst),
                        401 => {}
                        429 => _ = denied.fetch_add(1, Ordering::SeqCst),
                        other => panic!("{other}"),
                    },
                );
            });
        }
        for _ in 0..4 {
            let before = welcome.load(Ordering::SeqCst);
            eventually("it serves", || {
                welcome.load(Ordering::SeqCst) > before + 5 || denied.load(Ordering::SeqCst) > 9
            });
            let next = taken_over(&current);
            current.ended();
            current = next;
        }
        eventually("all guesses are spent", || wrong.load(Ordering::SeqCst) >= MOST);
        let begun = denied.load(Ordering::SeqCst);
        eventually("more are denied", || denied.load(Ordering::SeqCst) > begun + 20);
    });
    assert_eq!(wrong.load(Ordering::SeqCst), MOST);
    assert_eq!(Request::new(address, "POST", "/login?guess").form("user=alice").status(), 429);
}

#[test]
fn what_is_taken_back_in_the_old_process_is_free_in_the_new_one() {
    let (origin, gate) = gated();
    let mut gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: login\n    match: POST /held\n    outcome: {{success: {{status: 200}}}}\n    \
         limits: [{{name: guesses, key: client_ip, count: failures, rate: 1/hour}}]",
        origin.url()
    ));
    let mut client = gateway.connect();
    client.send(gateway.post("/held").bytes());
    eventually("it is under way", || origin.count() == 1);
    let next = taken_over(&gateway);
    let denied = next.post("/held").send();
    // A slot that may come back at any moment is not worth waiting an hour for.
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("1")));
    gate.open();
    assert_eq!(client.response().status, 200);
    assert_eq!(next.post("/held").status(), 200);
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn a_ban_that_begins_while_the_old_process_drains_holds_in_the_new_one() {
    let origin = Origin::start();
    let limit = "{name: tight, key: client_ip, rate: 1/second, then: {ban: 1h}}";
    let mut gateway = Gateway::start(format!("upstream: {}\nlimits: [{limit}]", origin.url()));
    let mut standing: Vec<_> = (0..4).map(|_| gateway.connect()).collect();
    let unlimited = |client: &mut RawClient| gateway.get("/").send_on(client).status;
    assert_eq!(unlimited(&mut standing[0]), 200);
    let next = taken_over(&gateway);
    // At most one of two within a second passes.
    let statuses: Vec<u16> = standing[1..].iter_mut().map(unlimited).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(gateway.ended().code(), Some(0));
    let denied = next.get("/").send();
    // Far longer than the window of the limit.
    assert!(denied.status == 429 && retry_after(&denied) > 1000, "{denied:?}");
}
