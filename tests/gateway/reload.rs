//! A new configuration is used at once, or not at all.

use std::fmt::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio_tungstenite::tungstenite::Message;

use crate::support::{Answer, Gateway, Origin, RawClient, StopOnDrop, Stopwatch, eventually, repeat_until, throughout};

fn named(name: &'static str) -> Origin {
    Origin::answering(move |_| Answer::ok(name))
}

#[test]
fn a_changed_file_is_read_without_being_asked() {
    let (old, new) = (named("old"), named("new"));
    let gateway = Gateway::start(format!("upstream: {}", old.url()));
    let mut client = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut client).text(), "old");
    gateway.write_config(format!("upstream: {}", new.url()));
    eventually("the new application answers", || gateway.get("/").send_on(&mut client).text() == "new");
}

#[test]
fn a_signal_reloads() {
    let (old, new) = (named("old"), named("new"));
    let gateway = Gateway::start(format!("upstream: {}", old.url()));
    gateway.write_config(format!("upstream: {}", new.url()));
    gateway.signal("HUP");
    eventually("the new application answers", || gateway.get("/").send().text() == "new");
    let told = gateway.reloads();
    gateway.signal("HUP");
    eventually("every signal is answered", || gateway.reloads() > told);
    assert_eq!(gateway.failed_reloads(), 0);
}

#[test]
fn warnings_are_logged_when_they_begin_to_hold() {
    let origin = Origin::start();
    let config = format!("upstream: {}\nroutes:\n  - match: /*\n  - match: POST /login\n", origin.url());
    let gateway = Gateway::start(&config);
    let warned = || {
        let lines = gateway.stderr();
        let lines = lines.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.filter(|line| line["level"] == "WARN" && line["column"].is_u64()).collect::<Vec<_>>()
    };
    eventually("the start warns", || warned().len() == 1);
    let told = warned().remove(0);
    assert!(told["line"].is_u64() && told["help"].is_string(), "{told}");
    assert!(told["file"].as_str().is_some_and(|file| file.ends_with("portcullis.yaml")), "{told}");
    assert!(told["message"].as_str().is_some_and(|message| message.contains("no request reaches")), "{told}");
    let before = gateway.reloads();
    gateway.signal("HUP");
    eventually("the same text is read again", || gateway.reloads() > before);
    assert_eq!(warned().len(), 1);
    gateway.reload(format!("# Another text.\n{config}"));
    assert_eq!(warned().len(), 1);
    gateway.reload(format!("{config}  - match: POST /logout\n"));
    assert_eq!(warned().len(), 2);
    assert!(warned()[1]["message"].as_str().is_some_and(|message| message.contains("no request reaches")));
    gateway.reload(config.replace("  - match: /*\n", ""));
    assert_eq!(warned().len(), 2);
    gateway.reload(&config);
    assert_eq!(warned().len(), 3);
}

#[test]
fn a_file_with_a_mistake_changes_nothing_and_is_told_with_its_place() {
    let origin = Origin::start();
    let good = format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nlimits:\n  - {{name: two, key: client_ip, rate: 2/hour}}",
        origin.url()
    );
    let gateway = Gateway::start(&good);
    assert_eq!(gateway.get("/").status(), 200);
    gateway.reload(good.replace("rate: 2/hour", "rate: 2/fortnight"));
    assert!(gateway.failed_reloads() > 0);
    let told = gateway.stderr().join("\n");
    assert!(told.contains("portcullis.yaml:6:"), "{told}");
    assert!(told.contains("fortnight"), "{told}");
    let place =
        gateway.stderr().iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).any(|line| {
            line["line"] == 6
                && line["column"].is_u64()
                && line["file"].as_str().is_some_and(|file| file.ends_with("portcullis.yaml"))
        });
    assert!(place, "{told}");
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(gateway.get("/").status(), 429);
    let metrics = crate::support::Request::new(gateway.admin(), "GET", "/metrics").send().text();
    assert!(metrics.contains("portcullis_config_last_reload_success 0"), "{metrics}");
    // Putting it right is a change again.
    gateway.reload(good.replace("2/hour", "3/hour"));
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn an_unreadable_list_changes_nothing() {
    let origin = Origin::start();
    let config =
        format!("upstream: {}\nlists:\n  abusers: {{file: abusers.txt}}\naccess: {{deny: [abusers]}}", origin.url());
    let gateway = Gateway::with_files(&config, &[("abusers.txt", "127.0.0.2\n")]);
    gateway.write("abusers.txt", "127.0.0.3\n127.0.0.999\n");
    eventually("the mistake is told", || gateway.failed_reloads() > 0);
    assert!(gateway.stderr().join("\n").contains("abusers.txt:2:"), "{:?}", gateway.stderr());
    assert_eq!(gateway.get("/").from("127.0.0.2").status(), 403);
    assert_eq!(gateway.get("/").from("127.0.0.3").status(), 200);
}

#[test]
fn a_changed_list_is_read_without_being_asked() {
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!("upstream: {}\nlists:\n  abusers: {{file: abusers.txt}}\naccess: {{deny: [abusers]}}", origin.url()),
        &[("abusers.txt", "# nobody yet\n")],
    );
    assert_eq!(gateway.get("/").status(), 200);
    gateway.write("abusers.txt", "127.0.0.1\n");
    eventually("the listed client is refused", || gateway.get("/").status() == 403);
}

#[test]
fn limits_keep_their_counters_by_name() {
    let origin = Origin::start();
    let with = |limits: &str| format!("upstream: {}\nlimits:\n{limits}", origin.url());
    let gateway = Gateway::start(with("  - {name: kept, key: client_ip, rate: 3/hour}"));
    assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 200]);
    gateway.reload(with(
        "  - {name: other, key: client_ip, rate: 100/hour}\n  - {name: kept, key: client_ip, rate: 3/hour}",
    ));
    assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 429]);
    gateway.reload(with("  - {name: kept, key: client_ip, rate: 4/hour}"));
    assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 429]);
    gateway.reload(with("  - {name: renamed, key: client_ip, rate: 1/hour}"));
    assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 429]);
}

#[test]
fn listeners_come_and_go_without_dropping_a_connection() {
    let origin = Origin::start();
    let upstream = format!("upstream: {}", origin.url());
    let gateway = Gateway::start(format!("listen: [127.0.0.1:0]\n{upstream}"));
    let first = gateway.address();
    let mut standing = RawClient::connect(first);
    assert_eq!(gateway.get("/").send_on(&mut standing).status, 200);
    gateway.reload(format!("listen: [127.0.0.1:0, '[::1]:0']\n{upstream}"));
    let second = *gateway.addresses().last().expect("a listener");
    assert_ne!(first, second);
    assert_eq!(RawClient::connect(second).send(gateway.get("/").bytes()).response().status, 200);
    assert_eq!(gateway.get("/").send_on(&mut standing).status, 200);
    gateway.reload(format!("listen: ['[::1]:0']\n{upstream}"));
    eventually("the first address has no listener", || TcpStream::connect(first).is_err());
    assert_eq!(RawClient::connect(second).send(gateway.get("/").bytes()).response().status, 200);
}

#[test]
fn a_request_under_way_finishes_as_it_began() {
    let slow = Origin::answering(|_| Answer::ok("slow").after(Duration::from_secs(1)));
    let new = named("new");
    let gateway = Gateway::start(format!("listen: 127.0.0.1:0\nupstream: {}", slow.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    eventually("the request is under way", || slow.count() == 1);
    gateway.reload(format!("listen: '[::1]:0'\nupstream: {}", new.url()));
    assert_eq!(client.response().text(), "slow");
}

#[test]
fn what_is_under_way_outlives_its_listener_until_the_gateway_stops() {
    let ends = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ends);
    let origin = Origin::scripted(move |mut exchange| {
        let Some(received) = exchange.request() else { return };
        if received.header("upgrade").is_some() {
            return crate::upgrade::echo_to(&received, exchange);
        }
        exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        while !told.load(Ordering::SeqCst) && exchange.write("1\r\n-\r\n") {
            exchange.pause(Duration::from_millis(20));
        }
        exchange.write("4\r\nlast\r\n0\r\n\r\n");
    });
    let rest = format!("upstream: {}\nserver: {{timeouts: {{drain: 300ms}}}}", origin.url());
    let mut gateway = Gateway::start(format!("listen: 127.0.0.1:0\n{rest}"));
    let removed = gateway.address();
    let mut tunnel = crate::upgrade::open(&gateway);
    let mut client = gateway.connect();
    client.send(gateway.get("/slow").bytes());
    eventually("both are under way", || origin.count() == 2);
    gateway.reload(format!("listen: '[::1]:0'\n{rest}"));
    eventually("the address has no listener", || TcpStream::connect(removed).is_err());
    throughout(Duration::from_secs(1), || {
        tunnel.send(Message::text("hello")).expect("an open tunnel");
        assert_eq!(tunnel.read().expect("an echo"), Message::text("hello"));
    });
    ends.store(true, Ordering::SeqCst);
    let answer = client.response().text();
    assert!(answer.starts_with("first-") && answer.ends_with("-last"), "{answer}");
    // Whatever its listener, `drain` bounds it once the gateway stops.
    gateway.signal("TERM");
    gateway.ended();
    assert!(gateway.log_messages().iter().any(|line| line.starts_with("drain timeout reached")));
    assert!(tunnel.read().is_err());
}

#[test]
fn a_million_lines_are_swapped_without_a_failed_or_a_slow_request() {
    let origin = Origin::start();
    let start = || {
        let config = "lists:\n  abusers: {file: abusers.txt}\naccess: {deny: [abusers]}";
        Gateway::with_files(format!("upstream: {}\n{config}", origin.url()), &[("abusers.txt", &million(10))])
    };
    // One of them swaps a list. The other shows how slow the machine makes requests meanwhile.
    let (gateway, resting) = (start(), start());
    let next = format!("{}127.0.0.2\n", million(11));
    let [slowest, otherwise] = slowest_until([&gateway, &resting], || {
        gateway.write("abusers.txt", &next);
        let swapped = Stopwatch::start();
        let is_over =
            || gateway.get("/").from("127.0.0.2").status() != 200 || swapped.elapsed() > Duration::from_secs(90);
        repeat_until(is_over, Duration::from_millis(20), || ());
    });
    assert_eq!(gateway.get("/").from("127.0.0.2").status(), 403);
    assert_eq!(gateway.failed_reloads(), 0);
    assert!(slowest < Duration::from_millis(300).max(otherwise * 4), "{slowest:?}, otherwise {otherwise:?}");
}

/// The longest that a request to each of them took while something else was done. None of them fails.
fn slowest_until(gateways: [&Gateway; 2], done: impl FnOnce()) -> [Duration; 2] {
    let over = AtomicBool::new(false);
    let ask = |gateway: &Gateway| {
        let mut client = gateway.connect();
        let mut slowest = Duration::ZERO;
        repeat_until(
            || over.load(Ordering::SeqCst),
            Duration::from_millis(1),
            || {
                let one = Stopwatch::start();
                assert_eq!(gateway.get("/").send_on(&mut client).status, 200);
                slowest = slowest.max(one.elapsed());
            },
        );
        slowest
    };
    thread::scope(|scope| {
        let traffic = gateways.map(|gateway| [(); 4].map(|()| scope.spawn(|| ask(gateway))));
        let end = StopOnDrop(&over);
        done();
        drop(end);
        traffic.map(|threads| {
            let slowest = threads.map(|thread| thread.join().expect("no request fails"));
            slowest.into_iter().max().expect("four threads")
        })
    })
}

/// As many networks of one /8, none next to another.
fn million(first: u8) -> String {
    let mut lines = String::with_capacity(20 << 20);
    for number in 0..1_000_000_u32 {
        let [_, a, b, c] = (number * 16).to_be_bytes();
        writeln!(lines, "{first}.{a}.{b}.{c}/30").expect("memory");
    }
    lines
}
