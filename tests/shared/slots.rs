//! Concurrency slots are counted for all gateways together, and those of a dead gateway are freed after their lease.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use crate::site::{ask_admin, config, store_up};
use crate::state;
use crate::support::{Answer, Gateway, Origin, RedisServer, eventually, found_within};

#[test]
fn slots_of_a_killed_gateway_are_free_again_after_their_lease() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::answering(move |request| {
        if request.header("x-probe").is_none() {
            // Fails when the test has let go of the other end: everyone may pass.
            let _ = gate.lock().expect("no panic here").recv();
        }
        Answer::ok("done")
    });
    let redis = RedisServer::start();
    let limit = "limits:\n  - {name: of-the-test, key: [], concurrent: 3}";
    let config = config(&origin.url(), &format!("url: \"{}\", timeout: 10s", redis.url()), "  on_failure: deny", limit);
    let (mut one, two) = (Gateway::start(&config), Gateway::start(&config));
    eventually("both have found Redis", || store_up(&one) && store_up(&two));
    let mut waiting: Vec<_> = [&one, &one, &two]
        .map(|gateway| {
            let mut client = gateway.connect();
            client.send(gateway.get("/").bytes());
            client
        })
        .into();
    eventually("three requests are in flight", || origin.count() == 3);
    assert_eq!(two.get("/").status(), 429, "three in flight through two gateways are three");
    one.kill();
    waiting.drain(..2);
    // A probe is answered at once and holds no slot for longer.
    let probe = || two.get("/").header("X-Probe", "1").status();
    assert_eq!(probe(), 429, "the slots were not given back");
    found_within(Duration::from_secs(40), || (probe() != 429).then_some(()).ok_or_else(|| "a free slot".to_owned()));
    // Two are free; the third belongs to a gateway that lives, however long its request takes.
    // Each has its own lease, and that of the probe is given back behind its answer.
    let is_free = || ask_admin(&two, "GET", "/api/v1/limits/of-the-test/state").text().contains("\"allowed\":true");
    for number in 0..2 {
        eventually("a slot is free", is_free);
        let mut client = two.connect();
        client.send(two.get("/").bytes());
        waiting.push(client);
        eventually("a request is in flight", || {
            origin.requests().iter().filter(|request| request.header("x-probe").is_none()).count() == 4 + number
        });
    }
    assert_eq!(probe(), 429);
    drop(open);
    for client in &mut waiting {
        assert_eq!(client.response().status, 200);
    }
    state::is_clean(&redis, 10);
}
