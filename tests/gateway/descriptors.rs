//! Without free descriptors the gateway stops accepting, without spinning, and goes on by itself. Open connections are
//! served meanwhile.

use std::num::NonZeroUsize;
use std::time::Duration;
use std::{fs, thread};

use http::Request;
use tokio::task::JoinSet;

use super::http2::{ask, over_http2};
use crate::http2_origin::Http2Origin;
use crate::support::{Answer, Gateway, Origin, RawClient, eventually};

/// As many descriptors as the gateway may have. A dozen are its own, and six of each core.
fn descriptors() -> u32 {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    88 + 6 * u32::try_from(cores).expect("a machine that fits into a rack")
}

/// More connections than there is room for.
const SILENT: usize = 150;

/// More requests than there are descriptors left for connections to the application; one connection may have so many.
const REQUESTS: usize = 100;

/// What the gateway has open.
fn open(gateway: &Gateway) -> usize {
    fs::read_dir(format!("/proc/{}/fd", gateway.pid())).expect("a running process").count()
}

/// Reloads sixty times between two servers, with requests on every core in between.
#[track_caller]
fn flip(urls: &[String; 2], http2: bool) {
    let config = |turn: usize| {
        format!("upstreams: {{app: {{servers: [\"{}\"], http2: {http2}}}}}\nupstream: app", urls[turn % 2])
    };
    let gateway = Gateway::start(config(0));
    let ask_on_all_cores = || {
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| assert_eq!(gateway.get("/").status(), 200));
            }
        });
    };
    ask_on_all_cores();
    let before = open(&gateway);
    for turn in 1..=60 {
        let told = gateway.reloads();
        gateway.write_config(config(turn));
        gateway.signal("HUP");
        eventually("it is reloaded", || gateway.reloads() > told);
        ask_on_all_cores();
    }
    assert_eq!(gateway.failed_reloads(), 0);
    eventually("connections to the other are closed", || open(&gateway) <= before + AT_ONCE);
}

/// So many connections at most are kept to the server that is in use.
const AT_ONCE: usize = 16;

#[test]
fn sixty_reloads_that_send_requests_elsewhere_leave_no_connection_to_where_they_went_before() {
    let origins = [Origin::start(), Origin::start()];
    flip(&origins.each_ref().map(Origin::url), false);
}

#[test]
fn nor_do_they_leave_one_over_http2() {
    let origins = [Http2Origin::start(), Http2Origin::start()];
    flip(&origins.each_ref().map(Http2Origin::url), true);
}

#[test]
fn a_request_under_way_at_a_reload_is_answered_and_its_connection_closed() {
    let origin = Origin::answering(|_| Answer::ok("slow").after(Duration::from_secs(1)));
    let other = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    eventually("the request is under way", || origin.count() == 1);
    let before = open(&gateway);
    gateway.reload(format!("upstream: {}", other.url()));
    assert_eq!(client.response().text(), "slow");
    eventually("its connection is closed", || open(&gateway) < before);
}

#[test]
fn with_every_descriptor_taken_new_clients_wait_and_those_that_stand_are_served() {
    // Each request needs a connection to the application.
    let origin = Origin::answering(|_| Answer::new(200, &[("Connection", "close")], "there").closing());
    let gateway = Gateway::with_descriptor_limit(format!("upstream: {}", origin.url()), descriptors());
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
    let before = gateway.cpu_ticks();
    thread::sleep(Duration::from_secs(2));
    let spent = gateway.cpu_ticks() - before;
    assert!(spent < 20, "{spent} hundredths of a second on nothing");

    all_are_served();

    let mut waiting = gateway.connect();
    waiting.send(gateway.get("/waited").bytes());
    drop(silent);
    assert_eq!(waiting.response().status, 200);
    all_are_served();
    assert_eq!(gateway.get("/").status(), 200);
}

/// Takes its time, so that many connections are open at once.
fn slow_origin() -> Origin {
    Origin::answering(|_| {
        Answer::new(200, &[("Connection", "close")], "there").closing().after(Duration::from_millis(300))
    })
}

#[test]
fn more_clients_at_once_than_there_are_descriptors_are_all_answered() {
    let origin = slow_origin();
    let gateway = Gateway::with_descriptor_limit(format!("upstream: {}", origin.url()), descriptors());
    let mut clients: Vec<RawClient> = (0..SILENT).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.send(gateway.get("/").header("Connection", "close").bytes());
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn more_requests_on_one_connection_than_there_are_descriptors_wait_for_one_and_blame_no_server() {
    // Long enough for three checks of its health to find no descriptor.
    let origin = Origin::answering(|request| match &*request.target {
        "/healthz" => Answer::ok("well"),
        _ => Answer::new(200, &[("Connection", "close")], "there").closing().after(Duration::from_secs(5)),
    });
    let configuration = format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{connect: 60s}}, health: {{path: /healthz, every: 100ms, timeout: 1s}}}}",
        origin.url()
    );
    let gateway = Gateway::with_descriptor_limit(configuration, descriptors());
    over_http2(&gateway, async |sender| {
        let mut asked = JoinSet::new();
        for _ in 0..REQUESTS {
            let sender = sender.clone();
            let request = Request::get("http://site.example/").body(()).expect("a request");
            asked.spawn(async move { ask(&sender, request, None).await });
        }
        while let Some(answered) = asked.join_next().await {
            assert_eq!(answered.expect("no panic").expect("an answer").status, 200);
        }
    });
    let blames = |line: &String| line.contains("connecting to a server failed") || line.contains("unhealthy");
    assert!(!gateway.stderr().iter().any(blames), "{:?}", gateway.stderr());
}
