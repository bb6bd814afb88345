//! What ten thousand held requests cost: `cargo test --release --test gateway -- --ignored --nocapture ten_thousand`.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::memory::connections;
use crate::support::{Gateway, Origin, Request, Stopwatch, eventually};

/// The median and the worst of so many requests that no limit is about, in microseconds.
fn latency(gateway: &Gateway) -> (u128, u128) {
    let mut client = gateway.connect();
    let mut spans: Vec<u128> = (0..500)
        .map(|_| {
            let waited = Stopwatch::start();
            assert_eq!(gateway.get("/free").send_on(&mut client).status, 200);
            waited.elapsed().as_micros()
        })
        .collect();
    spans.sort_unstable();
    (spans[250], spans[499])
}

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn ten_thousand_held_requests_are_printed() {
    let count = connections(10_000);
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}
admin: {{address: 127.0.0.1:0}}
log: {{requests: false}}
routes:
  - match: /held
    limits:
      - {{name: tar, key: client_ip, rate: 1/hour, then: {{tarpit: 10m}}}}",
        origin.url()
    ));
    let metrics = || Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let held = || metrics().contains(&format!("portcullis_held_requests {count}\n"));
    assert_eq!(gateway.get("/held").status(), 200);
    let (memory, free) = (gateway.resident_kib(), latency(&gateway));
    let begun = gateway.cpu_ticks();
    let request = gateway.get("/held").bytes();
    let clients: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut client = TcpStream::connect(gateway.address()).expect("the gateway accepts connections");
            client.write_all(&request).expect("a request is taken");
            client
        })
        .collect();
    eventually("all are held", held);
    let (since, taken) = (gateway.cpu_ticks(), gateway.resident_kib() - memory);
    let idle = Stopwatch::start();
    thread::sleep(Duration::from_secs(5));
    let spent = gateway.cpu_ticks() - since;
    println!("held                 {count} requests on as many connections");
    println!("memory               {taken} KiB, {} bytes each", taken * 1024 / count as u64);
    println!("processor to hold    {} ms", (since - begun) * 10);
    println!("processor while held {} ms in {:.1} s", spent * 10, idle.elapsed().as_secs_f64());
    println!("latency of others    {free:?} µs before, {:?} µs meanwhile (median, worst of 500)", latency(&gateway));
    drop(clients);
    eventually("no request is held", || metrics().contains("portcullis_held_requests 0\n"));
    assert_eq!(origin.requests().iter().filter(|request| request.head.starts_with("GET /held ")).count(), 1);
}
