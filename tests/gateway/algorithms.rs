//! The promises of each algorithm, measured from outside in real seconds.

use std::thread;
use std::time::Duration;

use crate::support::Gateway;
use crate::support::Origin;
use crate::support::Stopwatch;

fn limited(origin: &Origin, limit: &str) -> Gateway {
    Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: pace, key: client_ip, {limit}}}", origin.url()))
}

#[test]
fn no_window_of_the_log_ever_holds_more_than_its_rate() {
    let origin = Origin::start();
    let gateway = limited(&origin, "rate: 5 per 1 second");
    let clock = Stopwatch::start();
    let mut client = gateway.connect();
    let mut passed: Vec<(Duration, Duration)> = Vec::new();
    while clock.elapsed() < Duration::from_secs(3) {
        let before = clock.elapsed();
        if gateway.get("/").send_on(&mut client).status == 200 {
            passed.push((before, clock.elapsed()));
        }
    }
    // The gateway decided somewhere between the two moments: the sixth before was sent a second ago at least.
    for six in passed.windows(6) {
        let widest = six[5].1.saturating_sub(six[0].0);
        assert!(widest >= Duration::from_secs(1), "six within {widest:?}");
    }
    assert!(passed.len() >= 11, "only {} in three seconds", passed.len());
}

#[test]
fn a_token_bucket_lets_its_burst_through_at_once_and_then_one_at_a_time() {
    let origin = Origin::start();
    let gateway = limited(&origin, "rate: 60/hour, algorithm: token-bucket, burst: 3");
    let statuses: Vec<u16> = (0..4).map(|_| gateway.get("/").status()).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let wait: u64 = gateway.get("/").send().header("retry-after").expect("a wait").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
}

#[test]
fn a_fixed_window_opens_with_the_first_request_and_lasts_its_length() {
    let origin = Origin::start();
    let gateway = limited(&origin, "rate: 2 per 2 seconds, algorithm: fixed-window");
    let clock = Stopwatch::start();
    let statuses: Vec<u16> = (0..3).map(|_| gateway.get("/").status()).collect();
    assert_eq!(statuses, [200, 200, 429]);
    while gateway.get("/").status() == 429 {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(clock.elapsed() >= Duration::from_secs(2), "{:?}", clock.elapsed());
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(gateway.get("/").status(), 429);
}
