//! What it costs to keep known clients on disk: `cargo test --release --test gateway names_many:: -- --ignored --nocapture`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use std::{fs, thread};

use crate::support::{Gateway, Request, Stopwatch, eventually};

const NAMES: usize = 700_000;

/// How many sign-ins are on their way at a time, on each of a few connections.
const AT_A_TIME: usize = 100;

/// An application that lets everybody in, and keeps nothing of what it was sent.
fn application() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || let_in(stream));
        }
    });
    address
}

fn let_in(mut stream: TcpStream) {
    let (mut matched, mut bytes) = (0, [0; 16 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        let mut answers = Vec::new();
        for byte in &bytes[..read] {
            matched = if *byte == END[matched] { matched + 1 } else { usize::from(*byte == END[0]) };
            if matched == END.len() {
                answers.extend_from_slice(b"HTTP/1.1 302 Found\r\nLocation: /account\r\nContent-Length: 0\r\n\r\n");
                matched = 0;
            }
        }
        if stream.write_all(&answers).is_err() {
            return;
        }
    }
}

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// Signs these people in, many at a time.
fn sign_in(gateway: &Gateway, names: impl Iterator<Item = usize>) {
    let mut client = TcpStream::connect(gateway.address()).expect("the gateway accepts connections");
    let names: Vec<usize> = names.collect();
    let (mut bytes, mut seen) = (vec![0; 64 << 10], Vec::new());
    for some in names.chunks(AT_A_TIME) {
        let ask = |name| format!("POST /login?username=person-{name} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        let asked = some.iter().map(ask).collect::<Vec<_>>().concat();
        client.write_all(asked.as_bytes()).expect("an open connection");
        let mut answered = 0;
        while answered < some.len() {
            let read = client.read(&mut bytes).expect("an open connection");
            assert!(read > 0, "the gateway hangs up");
            seen.extend_from_slice(&bytes[..read]);
            let mut rest = 0;
            while let Some(end) = seen[rest..].windows(END.len()).position(|window| window == END) {
                assert!(seen[rest..].starts_with(b"HTTP/1.1 302 "), "{}", String::from_utf8_lossy(&seen[rest..]));
                rest += end + END.len();
                answered += 1;
            }
            seen.drain(..rest);
        }
    }
}

/// The processor time of the gateway, by its own metric.
fn processor(gateway: &Gateway) -> f64 {
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
    line.and_then(|seconds| seconds.parse().ok()).expect("it is told")
}

/// The processor time that so many seconds take, in milliseconds a second.
fn a_second(gateway: &Gateway, seconds: u32, mut each: impl FnMut()) -> f64 {
    let (before, waited) = (processor(gateway), Stopwatch::start());
    for second in 1..=seconds {
        each();
        thread::sleep(Duration::from_secs(second.into()).saturating_sub(waited.elapsed()));
    }
    (processor(gateway) - before) * 1000.0 / f64::from(seconds)
}

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn what_a_sign_in_costs_among_many_known_names_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let gateway = Gateway::start(format!(
        "upstream: http://{}\nadmin: {{address: 127.0.0.1:0}}\nlog: {{requests: false}}\n\
         store: {{memory: {{snapshot: {}}}}}\nroutes:\n  - match: POST /login\n    \
         outcome: {{success: {{status: 302, header: {{location: \"/account*\"}}}}}}\n    \
         known_clients: {{of: param.username, remember: 5, for: 90d}}\n",
        application(),
        path.display()
    ));
    let lanes = 8;
    thread::scope(|scope| {
        for lane in 0..lanes {
            let gateway = &gateway;
            scope.spawn(move || sign_in(gateway, (lane..NAMES).step_by(lanes)));
        }
    });
    let length = || fs::metadata(&path).map_or(0, |file| file.len());
    eventually("the names are on disk", || length() > NAMES as u64 * 20);
    // What is written after a burst has ended.
    thread::sleep(Duration::from_secs(20));
    println!("names                {NAMES}, {} bytes on disk", length());
    let idle = a_second(&gateway, 30, || {});
    println!("processor when idle  {idle:.2} ms a second");
    let mut name = 0;
    let busy = a_second(&gateway, 60, || {
        sign_in(&gateway, std::iter::once(name));
        name += 7919;
    });
    println!("one sign-in a second {:.2} ms of processor each", busy - idle);
}
