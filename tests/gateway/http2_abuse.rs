//! HTTP/2 frames that are valid one by one and meant to wear the gateway out: the connection is closed, and other
//! clients do not notice.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Answer, Gateway, Origin, StopOnDrop, Stopwatch, eventually, repeat_until, throughout};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0x55;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a request for `http://a/`, in indexes alone but for the authority.
pub(crate) fn head(method: u8) -> Vec<u8> {
    vec![method, 0x86, 0x84, 0x01, 1, b'a']
}

const GET: u8 = 0x82;
pub(crate) const POST: u8 = 0x83;

pub(crate) fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &head(GET))
}

fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &head(POST))
}

/// The stream of the n-th request.
pub(crate) fn stream(n: u32) -> u32 {
    2 * n + 1
}

/// A connection after its preface and settings.
pub(crate) fn speaking(gateway: &Gateway) -> TcpStream {
    let mut socket = gateway.connect().into_stream();
    socket.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat()).expect("the gateway listens");
    socket
}

#[test]
fn what_a_client_does_wrong_is_no_line_in_the_log() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}\nlog: {{level: debug, format: json}}", origin.url()));
    let mut socket = speaking(&gateway);
    let unasked = frame(PING, 1, 0, b"unasked!");
    socket.write_all(&[unasked.repeat(3), get(1)].concat()).expect("the gateway listens");
    eventually("the request arrives", || origin.count() == 1);
    drop(socket);
    gateway.signal("TERM");
    gateway.ended();
    let told = gateway.stderr().join("\n");
    assert!(!told.to_lowercase().contains("ping"), "{told}");
}

/// Sends `first`, and then so many frames, or fewer if the gateway does not listen to all; fails when the connection
/// still stands after that.
#[track_caller]
fn flood(gateway: &Gateway, name: &str, first: &[u8], most: u32, unit: &dyn Fn(u32) -> Vec<u8>) {
    let mut socket = speaking(gateway);
    let mut reading = socket.try_clone().expect("a socket");
    let reader = thread::spawn(move || while reading.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {});
    let _ = socket.write_all(first);
    let mut sent = 0;
    while sent < most && !reader.is_finished() {
        let batch: Vec<u8> = (sent..sent + 50).flat_map(unit).collect();
        if socket.write_all(&batch).is_err() {
            break;
        }
        sent += 50;
    }
    // Much of it may wait in buffers.
    eventually(&format!("{name} end their connection"), || reader.is_finished());
}

/// What a client asks while others do what they do: none of its requests may wait long.
fn others_are_served(gateway: &Gateway, during: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            let mut client = gateway.connect();
            repeat_until(
                || over.load(Ordering::SeqCst),
                Duration::from_millis(2),
                || {
                    let asked = Stopwatch::start();
                    assert_eq!(gateway.get("/other").send_on(&mut client).status, 200);
                    slowest = slowest.max(asked.elapsed());
                },
            );
            slowest
        });
        let end = StopOnDrop(&over);
        during();
        drop(end);
        let slowest = client.join().expect("every request is answered");
        assert!(slowest < Duration::from_secs(5), "another client waited {slowest:?}");
    });
}

/// The code of the GOAWAY by which the gateway ends a connection that sends so many of these frames. Nothing is sent while the
/// gateway has bytes to read: it would reset the connection, and the client might not read the end.
fn told(gateway: &Gateway, unit: &dyn Fn(u32) -> Vec<u8>) -> u32 {
    let mut socket = speaking(gateway);
    let marker = frame(PING, 0, 0, b"are you?");
    for batch in 0..MOST / 50 {
        let frames: Vec<u8> = (50 * batch..50 * (batch + 1)).flat_map(unit).collect();
        socket.write_all(&[&frames[..], &marker].concat()).expect("the gateway listens");
        loop {
            match read_frame(&mut socket) {
                (PING, 1, 0, payload) if payload == b"are you?" => break,
                (GOAWAY, _, _, payload) => {
                    let code = payload.get(4..8).expect("a code").try_into().expect("four bytes");
                    return u32::from_be_bytes(code);
                }
                _ => {}
            }
        }
    }
    panic!("the connection still stands");
}

#[test]
fn a_client_that_floods_is_told_why_its_connection_ends() {
    const ENHANCE_YOUR_CALM: u32 = 11;
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let floods: [Flood<'_>; 5] = [
        ("pings", b"", Box::new(|_| frame(PING, 1, 0, b"12345678"))),
        ("settings", b"", Box::new(|_| frame(SETTINGS, 0, 0, b""))),
        ("priorities", b"", Box::new(|n| frame(PRIORITY, 0, stream(n), &[0, 0, 0, 0, 9]))),
        ("windows", b"", Box::new(|_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))),
        ("resets", b"", Box::new(|n| [post(stream(n)), frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8])].concat())),
    ];
    for (name, _, unit) in &floods {
        assert_eq!(told(&gateway, unit), ENHANCE_YOUR_CALM, "{name}");
    }
}

/// As clients of gRPC do that read the first message of many.
#[test]
fn streams_that_are_given_up_once_their_answer_has_begun_are_no_flood() {
    let origin = Origin::scripted(|mut exchange| {
        while exchange.request().is_some() {
            exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
            if exchange.client_has_left() {
                return;
            }
        }
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut socket = speaking(&gateway);
    for n in 0..3000 {
        socket.write_all(&get(stream(n))).expect("the connection stands");
        while !matches!(read_frame(&mut socket), (DATA, _, on, _) if on == stream(n)) {}
        socket.write_all(&frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8])).expect("the connection stands");
    }
}

/// What it is, what comes first, and what then comes again and again.
type Flood<'f> = (&'f str, &'f [u8], Box<dyn Fn(u32) -> Vec<u8>>);

#[test]
fn floods_of_frames_end_their_connection_and_nobody_else_notices() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let one = |kind: u8, flags: u8, on: u32, payload: &[u8]| {
        let frame = frame(kind, flags, on, payload);
        move |_| frame.clone()
    };
    let open = post(1);
    let half = frame(HEADERS, END_STREAM, 1, &head(GET));
    // A name of a byte, and a value of thousands that are still to come.
    let begun = frame(HEADERS, END_STREAM, 1, &[&head(GET)[..], b"\0\x01a\x7f\x81\x7f"].concat());
    let floods: Vec<Flood<'_>> = vec![
        ("pings", b"", Box::new(one(PING, 0, 0, b"12345678"))),
        ("answers to no ping", b"", Box::new(one(PING, 1, 0, b"12345678"))),
        ("settings", b"", Box::new(one(SETTINGS, 0, 0, b""))),
        ("windows that change", b"", Box::new(|n| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0x10, n.to_be_bytes()[3]]))),
        ("answers to no settings", b"", Box::new(one(SETTINGS, 1, 0, b""))),
        ("windows of the connection", b"", Box::new(one(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))),
        ("windows of a stream", &open, Box::new(one(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]))),
        ("empty windows", &open, Box::new(one(WINDOW_UPDATE, 0, 1, &[0; 4]))),
        ("priorities", b"", Box::new(|n| frame(PRIORITY, 0, stream(n), &[0, 0, 0, 0, 9]))),
        ("priorities of themselves", b"", Box::new(one(PRIORITY, 0, 3, &[0, 0, 0, 3, 9]))),
        ("frames of no known kind", b"", Box::new(one(UNKNOWN, 0xff, 0, b"whatever"))),
        ("goodbyes", b"", Box::new(one(GOAWAY, 0, 0, &[0; 8]))),
        ("promises", b"", Box::new(|n| frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, n.to_be_bytes()[3] & 0xfe]))),
        ("empty data", &open, Box::new(one(DATA, 0, 1, b""))),
        ("data that is padding", &open, Box::new(one(DATA, 8, 1, b"\0"))),
        (
            "data that is padding of its full length",
            &open,
            Box::new(one(DATA, 8, 1, &[&[255][..], &[0; 255]].concat())),
        ),
        ("data on no stream", b"", Box::new(one(DATA, 0, 1, b"x"))),
        ("empty continuations", &half, Box::new(one(CONTINUATION, 0, 1, b""))),
        ("continuations", &half, Box::new(one(CONTINUATION, 0, 1, &[0x82; 1000]))),
        ("continuations of a byte", &half, Box::new(one(CONTINUATION, 0, 1, &[0x82]))),
        ("a field in continuations of a byte", &begun, Box::new(one(CONTINUATION, 0, 1, b"x"))),
        (
            "a head without end",
            &half,
            Box::new(one(CONTINUATION, 0, 1, &[b"\0\x01a\x7f\x81\x07", &[b'x'; 1000][..]].concat())),
        ),
        ("resets of one stream", &open, Box::new(one(RST_STREAM, 0, 1, &[0, 0, 0, 8]))),
        ("resets of no stream", b"", Box::new(|n| frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8]))),
        (
            "streams given up at once",
            b"",
            Box::new(|n| [get(stream(n)), frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8])].concat()),
        ),
        ("streams that never end", b"", Box::new(|n| post(stream(n)))),
        ("heads that are none", b"", Box::new(|n| frame(HEADERS, END_HEADERS | END_STREAM, stream(n), &[0x86]))),
        (
            "windows too large",
            b"",
            Box::new(|n| [post(stream(n)), frame(WINDOW_UPDATE, 0, stream(n), &[0x7f, 0xff, 0xff, 0xff])].concat()),
        ),
        (
            "bodies that are too long for their length",
            b"",
            Box::new(|n| {
                let length = [&head(POST)[..], b"\x0f\x0d\x011"].concat();
                [frame(HEADERS, END_HEADERS, stream(n), &length), frame(DATA, 0, stream(n), b"12345")].concat()
            }),
        ),
    ];
    assert!(floods.len() >= 29, "{} rows", floods.len());
    let before = gateway.resident_kib();
    others_are_served(&gateway, || {
        for (name, first, unit) in &floods {
            flood(&gateway, name, first, MOST, unit);
        }
    });
    let grown = gateway.resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more than before");
}

/// More than any client sends of what brings nothing forward.
const MOST: u32 = 200_000;

#[test]
fn streams_that_are_given_up_once_they_are_under_way_end_their_connection_too() {
    // No stream is denied before the connection ends: a reset after an answer costs little.
    let origin = Origin::answering(|request| match request.target.as_str() {
        "/now" => Answer::ok("now"),
        _ => Answer::ok("late").after(Duration::from_secs(2)),
    });
    let gateway = Gateway::start(format!("upstream: {}\nlimits: [{{key: client_ip, rate: 1000/hour}}]", origin.url()));
    let mut socket = speaking(&gateway);
    let mut reading = socket.try_clone().expect("a socket");
    let reader = thread::spawn(move || while reading.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {});
    let mut streams = 0;
    while streams < 1000 && !reader.is_finished() {
        let some: Vec<u32> = (streams..streams + 20).map(stream).collect();
        let heads: Vec<u8> = some.iter().flat_map(|id| get(*id)).collect();
        let resets: Vec<u8> = some.iter().flat_map(|id| frame(RST_STREAM, 0, *id, &[0, 0, 0, 8])).collect();
        let _ = socket.write_all(&heads);
        streams += 20;
        let all = usize::try_from(streams).expect("few");
        eventually("they are under way", || origin.count() >= all || reader.is_finished());
        let _ = socket.write_all(&resets);
    }
    assert!(streams < 1000, "the connection still stands");
    let _ = socket.shutdown(Shutdown::Both);
    reader.join().expect("a reader does not panic");
    // Given up or not, each was a request.
    let more = (0..1000).take_while(|_| gateway.get("/now").status() == 200).count();
    assert!((1..1000).contains(&more) && origin.count() <= 1000, "{} requests", origin.count());
}

#[test]
fn heads_that_grow_when_they_are_unpacked_are_refused() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let before = gateway.resident_kib();
    // A field of 3000 bytes that is kept, then bytes of which each stands for all of it.
    let kept = [&[0x40, 1, b'a', 0x7f, 0xb9, 0x16][..], &[b'x'; 3000]].concat();
    let first = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[&head(GET)[..], &kept].concat());
    let bomb =
        |n: u32| frame(HEADERS, END_HEADERS | END_STREAM, stream(n + 1), &[&head(GET)[..], &[0xbe; 16_000]].concat());
    others_are_served(&gateway, || {
        flood(&gateway, "heads that grow", &first, 1000, &bomb);
    });
    assert!(gateway.resident_kib().saturating_sub(before) < 32 * 1024);
    assert!(origin.requests().iter().all(|request| request.headers.all("a").len() < 25), "more than fits in a head");
}

#[test]
fn streams_that_nobody_reads_cost_little_and_are_given_up() {
    let large = vec![b'x'; 256 << 10];
    let origin =
        Origin::answering(move |received| Answer::ok(if received.target == "/" { &large[..] } else { b"small" }));
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{timeouts: {{body_idle: 2s}}}}", origin.url()));
    let before = gateway.resident_kib();
    for window in [0, 1] {
        others_are_served(&gateway, || {
            let mut sockets: Vec<TcpStream> = (0..3).map(|_| speaking(&gateway)).collect();
            for socket in &mut sockets {
                let small = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, window]);
                let streams: Vec<u8> = (0..100).flat_map(|n| get(stream(n))).collect();
                let _ = socket.write_all(&[small, streams].concat());
            }
            throughout(Duration::from_millis(1500), || {
                let each = gateway.resident_kib().saturating_sub(before) / 300;
                assert!(each < 128, "{each} KiB for each stream");
            });
        });
    }
}

#[test]
fn a_client_that_asks_for_much_and_reads_nothing_is_closed() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{timeouts: {{body_idle: 1s}}}}", origin.url()));
    let before = gateway.resident_kib();
    let mut socket = speaking(&gateway);
    socket.set_write_timeout(Some(Duration::from_millis(100))).expect("a timeout above zero");
    // Pings are to be answered: nothing more of them is read while the answers do not get through.
    let pings: Vec<u8> = (0..1000).flat_map(|_| frame(PING, 0, 0, b"12345678")).collect();
    eventually(
        "it is closed",
        || matches!(socket.write_all(&pings), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock),
    );
    assert!(gateway.resident_kib().saturating_sub(before) < 16 * 1024);
}

/// A literal that no table is to keep.
pub(crate) fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = |text: &[u8]| u8::try_from(text.len()).expect("short text");
    [&[0, length(name)], name, &[length(value)], value].concat()
}

/// The next frame: its kind, its flags, its stream and its payload.
pub(crate) fn read_frame(socket: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let mut header = [0; 9];
    socket.read_exact(&mut header).expect("the connection stands");
    let [high, middle, low, kind, flags, stream @ ..] = header;
    let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
    socket.read_exact(&mut payload).expect("the connection stands");
    (kind, flags, u32::from_be_bytes(stream), payload)
}

#[test]
fn a_malformed_request_is_answered_400_and_logged_and_the_streams_beside_it_go_on() {
    let origin = Origin::answering(|_| Answer::ok("whole").after(Duration::from_millis(500)));
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let malformed: [(&str, Vec<u8>); 8] = [
        ("/capitals", field(b"X-Up", b"y")),
        ("/cr", field(b"x", b"y\rz")),
        ("/lf", field(b"x", b"y\nz: z")),
        ("/nul", field(b"x", b"y\0z")),
        ("/pseudo", field(b":unknown", b"y")),
        ("/quote", field(b"x\"y", b"z")),
        ("/connection", field(b"connection", b"close")),
        ("/twice", field(b":method", b"GET")),
    ];
    let mut socket = speaking(&gateway);
    socket.write_all(&get(1)).expect("the gateway listens");
    let mut expected = vec![1];
    for ((path, wrong), stream) in malformed.iter().zip((3..).step_by(4)) {
        let block = [&[GET, 0x86, 0x01, 1, b'a'][..], &field(b":path", path.as_bytes()), wrong].concat();
        let healthy = get(stream + 2);
        let sick = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
        socket.write_all(&[sick, healthy].concat()).expect("the gateway listens");
        expected.push(stream + 2);
    }
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout above zero");
    let (mut whole, mut refused, mut reset) = (Vec::new(), Vec::new(), Vec::new());
    while whole.len() < expected.len() || reset.len() < malformed.len() {
        match read_frame(&mut socket) {
            (GOAWAY, ..) => panic!("the connection ended"),
            // 200 and 400 in the table that every peer has.
            (HEADERS, _, stream, block) if block[0] == 0x8c => refused.push(stream),
            (DATA, flags, stream, data) if flags & END_STREAM != 0 => {
                assert_eq!(data, b"whole");
                whole.push(stream);
            }
            (RST_STREAM, _, stream, reason) => {
                assert_eq!(reason, [0, 0, 0, 1], "PROTOCOL_ERROR");
                reset.push(stream);
            }
            _ => {}
        }
    }
    whole.sort_unstable();
    assert_eq!(whole, expected);
    assert_eq!((refused.len(), reset.len()), (malformed.len(), malformed.len()));
    assert_eq!(origin.count(), expected.len());
    for (path, _) in &malformed {
        let line = gateway.log_line(path);
        assert_eq!((line["method"].as_str(), line["host"].as_str()), (Some("GET"), Some("a")), "{line}");
        assert_eq!((line["decision"].as_str(), line["status"].as_u64()), (Some("error"), Some(400)), "{line}");
    }
}

#[test]
fn data_of_a_refused_stream_makes_room_for_that_of_others() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut socket = speaking(&gateway);
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout above zero");
    // Far more than the window of the connection, padded, on streams whose heads were malformed.
    let padded = [&[200_u8][..], &[b'x'; 15_000], &[0; 200]].concat();
    for stream in (1..200).step_by(2) {
        let malformed = [&head(POST)[..], &field(b"X", b"y")].concat();
        socket.write_all(&frame(HEADERS, END_HEADERS, stream, &malformed)).expect("the gateway listens");
        socket.write_all(&frame(DATA, END_STREAM | 8, stream, &padded)).expect("the gateway listens");
        while !matches!(read_frame(&mut socket), (HEADERS, _, of, _) if of == stream) {}
    }
    socket.write_all(&post(201)).expect("the gateway listens");
    socket.write_all(&frame(DATA, END_STREAM, 201, b"hello")).expect("the gateway listens");
    while !matches!(read_frame(&mut socket), (DATA, _, 201, _)) {}
    assert_eq!(origin.last().body, b"hello");
}
