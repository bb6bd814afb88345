//! What ten thousand routes cost: `cargo test --release --test gateway routes_many:: -- --ignored --nocapture`.

use std::fmt::Write;
use std::time::Duration;

use crate::support::{Gateway, Request, Stopwatch, eventually};

/// A configuration with many routes, and requests that take them.
struct Table {
    name: &'static str,
    routes: String,
    /// Host and path.
    requests: Vec<(String, String)>,
}

impl Table {
    /// Ten routes on each host.
    fn of_hosts(name: &'static str, hosts: usize) -> Self {
        let places = (0..hosts * 10).map(|n| (format!("shop-{}.example.com", n / 10), format!("/section-{}", n % 10)));
        let routes = places.clone().map(|(host, path)| format!("{{host: {host}, path: {path}/*}}"));
        Self::new(name, routes, places.map(|(host, path)| (host, path + "/7")))
    }

    /// One expression a route: half of them are of whole segments, and half are anywhere in the path.
    fn of_expressions(name: &'static str, count: usize) -> Self {
        let routes = (0..count).map(|n| match n % 2 {
            0 => format!(r#"{{path_regex: "^/shop-{n}/[0-9]+$"}}"#),
            _ => format!(r#"{{path_regex: "/item-{n}[.]html?$"}}"#),
        });
        let paths = (0..count).map(|n| if n % 2 == 0 { format!("/shop-{n}/7") } else { format!("/old/item-{n}.htm") });
        Self::new(name, routes, paths.map(|path| ("shop.example.com".to_owned(), path)))
    }

    /// Every route refuses its requests, so that no application is measured.
    fn new(
        name: &'static str,
        matches: impl Iterator<Item = String>,
        requests: impl Iterator<Item = (String, String)>,
    ) -> Self {
        let mut routes = String::new();
        for condition in matches {
            let _ = writeln!(routes, "  - {{match: {condition}, only: [nobody]}}");
        }
        Self { name, routes, requests: requests.collect() }
    }

    /// The same with a limit of its own for each route.
    fn with_limits(self, name: &'static str) -> Self {
        let limited = ", limits: [{key: client_ip, rate: 1000000/second}]}\n";
        Self { name, routes: self.routes.replace("}\n", limited), ..self }
    }

    fn config(&self) -> String {
        format!(
            "upstream: http://127.0.0.1:9\nadmin: {{address: 127.0.0.1:0}}\nlog: {{requests: false}}\n\
             lists: {{nobody: {{addresses: [192.168.255.255/32]}}}}\nroutes:\n{}",
            self.routes
        )
    }
}

/// What a table costs.
struct Measured {
    /// To the first answer.
    start: Duration,
    reload: Duration,
    /// Of the processors, for one request.
    request: Duration,
    /// The answer of `/metrics`, and how long it takes.
    metrics: (usize, Duration),
    resident_kib: u64,
}

impl Measured {
    fn of(table: &Table) -> Self {
        let waited = Stopwatch::start();
        let gateway = Gateway::start(table.config());
        assert_eq!(gateway.get("/").host("other.example.com").status(), 502);
        let start = waited.elapsed();
        let request = each_request(&gateway, &table.requests);
        let waited = Stopwatch::start();
        let answer = Request::new(gateway.admin(), "GET", "/metrics").send();
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).expect("a length");
        let metrics = (length, waited.elapsed());
        let before = gateway.reloads();
        gateway.write_config(table.config() + "  - match: /one-more\n");
        let waited = Stopwatch::start();
        gateway.signal("HUP");
        eventually("the configuration is reloaded", || gateway.reloads() > before);
        let reload = waited.elapsed();
        assert_eq!(gateway.failed_reloads(), 0);
        Self { start, reload, request, metrics, resident_kib: gateway.resident_kib() }
    }
}

/// What the gateway takes of the processors for each of many requests, which come to all routes in turn.
fn each_request(gateway: &Gateway, requests: &[(String, String)]) -> Duration {
    let ask = |(host, path): &(String, String)| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut client = gateway.connect();
    let mut send = |count: u32| {
        let mut rest = requests.iter().cycle().take(count as usize).map(ask);
        loop {
            let some: Vec<String> = rest.by_ref().take(AT_A_TIME).collect();
            if some.is_empty() {
                break;
            }
            client.send(some.concat());
            assert!(some.iter().all(|_| client.response().status == 403), "each request takes a route");
        }
    };
    send(REQUESTS / 10);
    let before = gateway.cpu_ticks();
    send(REQUESTS);
    let ticks = u32::try_from(gateway.cpu_ticks() - before).expect("less than a year");
    ticks * TICK / REQUESTS
}

const REQUESTS: u32 = 100_000;

/// How many requests are on their way at a time.
const AT_A_TIME: usize = 100;

const TICK: Duration = Duration::from_millis(10);

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn what_ten_thousand_routes_cost_is_printed() {
    println!(
        "{:40} {:>9} {:>9} {:>11} {:>24} {:>10}",
        "routes", "start", "reload", "a request", "/metrics", "resident"
    );
    for table in [
        Table::of_hosts("ten", 1),
        Table::of_hosts("ten thousand on a thousand hosts", 1000),
        Table::of_hosts("", 1000).with_limits("the same, with a limit each"),
        Table::of_expressions("ten expressions", 10),
        Table::of_expressions("ten thousand expressions", 10_000),
    ] {
        let Measured { start, reload, request, metrics: (bytes, took), resident_kib } = Measured::of(&table);
        println!(
            "{:40} {:>6} ms {:>6} ms {:>8.2} µs {:>9} kB in {:>5} ms {:>6} MiB",
            table.name,
            start.as_millis(),
            reload.as_millis(),
            request.as_secs_f64() * 1e6,
            bytes / 1000,
            took.as_millis(),
            resident_kib / 1024
        );
    }
}
