//! Descriptors run out: accepting pauses and goes on by itself, without spinning, and who is there is served.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::Answer;
use crate::support::Gateway;
use crate::support::Origin;
use crate::support::RawClient;

/// As many descriptors as the gateway may have; its own and both cores' are among them.
const DESCRIPTORS: u32 = 100;

/// More connections than that.
const SILENT: usize = 150;

/// Time on a processor so far, in hundredths of a second.
fn ticks(gateway: &Gateway) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", gateway.pid())).expect("a running process");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    [11, 12].iter().map(|field| fields[*field].parse::<u64>().expect("a number")).sum()
}

#[test]
fn with_every_descriptor_taken_new_clients_wait_and_those_that_stand_are_served() {
    // Each request needs a connection to the application.
    let origin = Origin::answering(|_| Answer::new(200, &[("Connection", "close")], "there").closing());
    let gateway = Gateway::with_descriptors(format!("upstream: {}", origin.url()), DESCRIPTORS);
    let mut standing: Vec<RawClient> = (0..20).map(|_| gateway.connect()).collect();
    let mut all_are_served = || {
        for client in &mut standing {
            assert_eq!(gateway.get("/").send_on(client).status, 200);
        }
    };
    all_are_served();
    let silent: Vec<RawClient> = (0..SILENT).map(|_| gateway.connect()).collect();
    // Silent ones are closed after ten seconds; until then nothing is to be gained by trying.
    thread::sleep(Duration::from_millis(500));
    let before = ticks(&gateway);
    thread::sleep(Duration::from_secs(2));
    let spent = ticks(&gateway) - before;
    assert!(spent < 20, "{spent} hundredths of a second on nothing");

    all_are_served();

    let mut waiting = gateway.connect();
    waiting.send(gateway.get("/waited").bytes());
    drop(silent);
    assert_eq!(waiting.response().status, 200);
    all_are_served();
    assert_eq!(gateway.get("/").status(), 200);
}
