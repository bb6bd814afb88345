//! Slots in flight and standing connections of a process that is taken over from.

use crate::http2::{ask, over_http2};
use crate::support::{Gateway, Origin, RawClient, Request, eventually};
use crate::takeover_counts::{gated, taken_over};

fn three_at_a_time(origin: &Origin) -> Gateway {
    let limit = "{name: all, key: client_ip, concurrent: 3}";
    Gateway::start(format!("upstream: {}\nserver: {{timeouts: {{drain: 1m}}}}\nlimits: [{limit}]", origin.url()))
}

/// Requests under way that are not answered yet.
fn held(gateway: &Gateway, origin: &Origin, count: usize) -> Vec<RawClient> {
    let before = origin.count();
    let request = gateway.get("/held");
    let mut clients: Vec<_> = (0..count).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.send(request.bytes());
    }
    eventually("they are under way", || origin.count() == before + count);
    clients
}

#[test]
fn slots_in_flight_of_the_old_process_are_taken_in_the_new_one_until_they_come_back() {
    let (origin, gate) = gated();
    let mut gateway = three_at_a_time(&origin);
    let mut clients = held(&gateway, &origin, 2);
    let next = taken_over(&gateway);
    let mut last = held(&next, &origin, 1);
    assert_eq!(next.get("/").status(), 429);
    gate.open();
    clients.iter_mut().chain(&mut last).for_each(|client| assert_eq!(client.response().status, 200));
    eventually("the slots are back", || next.get("/").status() == 200);
    assert_eq!(gateway.ended().code(), Some(0));
    assert_eq!(held(&next, &origin, 3).len(), 3);
}

#[test]
fn a_killed_predecessor_keeps_no_slot() {
    let (origin, gate) = gated();
    let mut gateway = three_at_a_time(&origin);
    let clients = held(&gateway, &origin, 3);
    let next = taken_over(&gateway);
    assert_eq!(next.get("/").status(), 429);
    gateway.kill();
    eventually("the slots are back", || next.get("/").status() == 200);
    gate.open();
    drop(clients);
}

#[test]
fn a_killed_successor_leaves_nothing_hanging_and_admits_nothing_more() {
    let (origin, gate) = gated();
    let mut gateway = three_at_a_time(&origin);
    let mut under_way = held(&gateway, &origin, 1);
    let mut standing: Vec<_> = (0..3).map(|_| gateway.connect()).collect();
    for client in &mut standing {
        assert_eq!(gateway.get("/").send_on(client).status, 200);
    }
    let mut next = taken_over(&gateway);
    next.kill();
    for client in &mut standing {
        assert_eq!(gateway.get("/").send_on(client).status, 503);
    }
    gate.open();
    assert_eq!(under_way.remove(0).response().status, 200);
    assert_eq!(gateway.ended().code(), Some(0));
    let told = gateway.log_messages().iter().filter(|line| line.contains("has taken over is gone")).count();
    assert_eq!(told, 1);
    assert_eq!(origin.count(), 4);
}

#[test]
fn connections_of_the_old_process_are_counted_by_the_new_one() {
    let origin = Origin::start();
    let limit = "{name: tight, key: client_ip, rate: 8/hour}";
    let mut gateway = Gateway::start(format!("upstream: {}\nlimits: [{limit}]", origin.url()));
    let mut standing: Vec<_> = (0..3).map(|_| gateway.connect()).collect();
    for client in &mut standing {
        assert_eq!(gateway.get("/").send_on(client).status, 200);
    }
    let address = gateway.address();
    let (first, next) = over_http2(&gateway, async |sender| {
        let get = || http::Request::get("http://app.example/").body(()).expect("a request");
        let first = ask(&sender, get(), None).await.expect("an answer").status;
        let next = taken_over(&gateway);
        (first, next)
    });
    assert_eq!(first, 200);
    // Four are counted; three more come over connections of the old process, and one here.
    for client in &mut standing {
        let answer = gateway.get("/").send_on(client);
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    }
    assert_eq!(Request::new(address, "GET", "/").status(), 200);
    assert_eq!(next.get("/").status(), 429);
    assert_eq!(gateway.ended().code(), Some(0));
    assert_eq!(origin.count(), 8);
}

#[test]
fn three_processes_in_a_row_count_together() {
    let (origin, gate) = gated();
    let mut first = three_at_a_time(&origin);
    let mut of_first = held(&first, &origin, 1);
    let mut rests = first.connect();
    assert_eq!(first.get("/").send_on(&mut rests).status, 200);
    let mut second = taken_over(&first);
    let mut of_second = held(&second, &origin, 1);
    let third = taken_over(&second);
    let of_third = held(&third, &origin, 1);
    assert_eq!(third.get("/").status(), 429);
    // What the first one still has to ask, it asks the third: the second may go.
    assert_eq!(first.get("/").send_on(&mut rests).status, 429);
    second.kill();
    eventually("the slot of the second is back", || third.get("/").status() == 200);
    let more = held(&third, &origin, 1);
    assert_eq!(third.get("/").status(), 429);
    gate.open();
    assert_eq!(of_first.remove(0).response().status, 200);
    assert!(of_second.remove(0).rest().is_empty());
    assert_eq!(first.ended().code(), Some(0));
    drop((of_third, more));
    eventually("all slots are back", || third.get("/").status() == 200);
}
