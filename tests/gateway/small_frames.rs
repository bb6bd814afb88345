//! The memory of a connection whose body a key reads, however the body is cut into chunks and frames.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use crate::bodies::gzip;
use crate::support::{Gateway, Origin};

/// What one connection may take, in KiB, with any framing.
const EACH: u64 = 160;

/// What each core beyond two keeps for itself once it has been at work, in KiB: its part of the allocator's memory. The
/// warm-up does not reach all of many.
const EACH_CORE: usize = 4 * 1024;

/// As much of a body as is looked into.
const LENGTH: usize = 64 * 1024;

fn gateway(origin: &Origin) -> Gateway {
    // The first body waits until the last client has sent its own: on a busy machine longer than the default.
    Gateway::start(format!(
        "upstream: {}\nlog: {{requests: false}}\nserver: {{timeouts: {{body_idle: 10m}}}}\n\
         limits:\n  - {{name: user, key: param.user, rate: 100000/hour}}",
        origin.url()
    ))
}

/// What the gateway has taken at the most, in KiB for each connection, once every client has sent its body but for the
/// last byte and nothing changes any more.
fn kib_each<C>(gateway: &Gateway, count: usize, mut send: impl FnMut() -> C, mut finish: impl FnMut(&mut C)) -> u64 {
    // What each of the gateway's threads takes once is no connection's.
    (0..8).for_each(|_| finish(&mut send()));
    let before = settled(gateway);
    let mut clients: Vec<C> = (0..count).map(|_| send()).collect();
    settled(gateway);
    for client in &mut clients {
        finish(client);
    }
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let of_cores = (cores.saturating_sub(2) * EACH_CORE) as u64;
    gateway.peak_kib().saturating_sub(before + of_cores) / count as u64
}

/// Resident memory once it stays the same for longer than the gateway holds on to what is free.
pub(crate) fn settled(gateway: &Gateway) -> u64 {
    crate::support::settled(6, Duration::from_millis(300), || gateway.resident_kib())
}

/// Over HTTP/1.1: these bytes behind the head, and then those.
#[track_caller]
fn check_http1(name: &str, head: &str, but_for_the_last: &[u8], rest: &[u8]) {
    let origin = Origin::start();
    let gateway = gateway(&origin);
    let send = || {
        let mut client = gateway.connect();
        client.send(format!("POST /login HTTP/1.1\r\nHost: a.test\r\n{head}\r\n\r\n"));
        client.send(but_for_the_last);
        client
    };
    let each = kib_each(&gateway, 40, send, |client| assert_eq!(client.send(rest).response().status, 200));
    assert!(each <= EACH, "{name}: {each} KiB for each connection");
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\nContent-Type: application/x-www-form-urlencoded";

fn form() -> String {
    format!("user=alice&pad={}", "x".repeat(LENGTH - 16))
}

fn chunks(body: &[u8], size: usize, extension: &str) -> Vec<u8> {
    let chunk = |piece: &[u8]| [format!("{:x}{extension}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    body.chunks(size).flat_map(chunk).collect()
}

#[test]
fn chunks_of_a_byte_take_no_more_than_the_body() {
    check_http1("chunks of a byte", CHUNKED, &chunks(form().as_bytes(), 1, ""), b"1\r\ny\r\n0\r\n\r\n");
}

#[test]
fn json_in_chunks_of_three_bytes_takes_no_more_than_the_body() {
    let head = "Transfer-Encoding: chunked\r\nContent-Type: application/json";
    let text = format!("{{\"user\":\"alice\",\"pad\":\"{}", "x".repeat(LENGTH - 25));
    check_http1("chunks of three bytes", head, &chunks(text.as_bytes(), 3, ""), b"2\r\n\"}\r\n0\r\n\r\n");
}

#[test]
fn chunks_with_extensions_take_no_more_than_the_body() {
    // Half a chunk more than is shared with what it was read into, behind one with all that may stand beside it.
    let body = form();
    let mut sent = chunks(&body.as_bytes()[..2100], 2100, &format!(";{}", "e".repeat(200)));
    sent.extend(chunks(&body.as_bytes()[2100..], 2100, ";e=12"));
    check_http1("chunks with extensions", CHUNKED, &sent, b"1\r\ny\r\n0\r\n\r\n");
}

#[test]
fn a_compressed_body_in_small_chunks_takes_no_more() {
    let noise: String =
        (0..LENGTH).map(|at| char::from(b'a' + u8::try_from(at * at / 7 % 26).expect("a letter"))).collect();
    let body = gzip(&format!("user=alice&pad={noise}"));
    let head = format!("{CHUNKED}\r\nContent-Encoding: gzip");
    let (start, end) = body.split_at(body.len() - 1);
    check_http1("gzip", &head, &chunks(start, 1, ""), &[&chunks(end, 1, "")[..], b"0\r\n\r\n"].concat());
}

/// Over HTTP/2: a form in frames of so much data and so much padding.
#[track_caller]
fn check_http2(name: &str, data: usize, padding: usize) {
    let origin = Origin::start();
    let gateway = gateway(&origin);
    let form = form();
    let send = || {
        let mut client = Http2::posting(&gateway);
        for (number, piece) in form.as_bytes()[..LENGTH - 1].chunks(data).enumerate() {
            client.data(piece, padding, 0);
            // h2 takes so many small frames that were not read yet, and no more.
            if number % 100 == 99 {
                client.ping();
            }
        }
        client.ping();
        client
    };
    let each = kib_each(&gateway, 40, send, |client| {
        client.data(b"y", padding, END_STREAM);
        assert!(client.is_answered_well());
    });
    assert!(each <= EACH, "{name}: {each} KiB for each connection");
}

#[test]
fn frames_of_a_byte_take_no_more_than_the_body() {
    check_http2("frames of a byte", 1, 0);
}

#[test]
fn padded_frames_take_no_more_than_the_body() {
    check_http2("padded frames", 8, 200);
}

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const ACK: u8 = 1;

/// A client of HTTP/2 with one request under way, in frames as they are.
struct Http2 {
    socket: TcpStream,
    /// What may still be sent on the connection, and on its stream.
    windows: [usize; 2],
    /// What is sent with the next ping.
    waiting: Vec<u8>,
    pongs: usize,
    answer: Option<u8>,
}

impl Http2 {
    fn posting(gateway: &Gateway) -> Self {
        let socket = gateway.connect().into_stream();
        let windows = [65_535, 65_535];
        let mut client = Self { socket, windows, waiting: Vec::new(), pongs: 0, answer: None };
        client.waiting.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.frame(SETTINGS, 0, 0, b"");
        let kind = b"application/x-www-form-urlencoded";
        // POST http://a/, in indexes alone but for the authority and the kind of its content.
        let head = [&[0x83, 0x86, 0x84, 0x01, 1, b'a', 0x0f, 0x10, 33][..], kind].concat();
        client.frame(HEADERS, END_HEADERS, 1, &head);
        client
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
        self.waiting.extend([&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat());
    }

    fn data(&mut self, data: &[u8], padding: usize, flags: u8) {
        let mut payload = data.to_vec();
        if padding > 0 {
            payload.insert(0, u8::try_from(padding).expect("at most 255"));
            payload.extend(vec![0; padding]);
        }
        while self.windows.iter().any(|window| *window < payload.len()) {
            self.flush();
            self.hear();
        }
        self.windows = self.windows.map(|window| window - payload.len());
        let padded = if padding > 0 { PADDED } else { 0 };
        self.frame(0, flags | padded, 1, &payload);
    }

    /// Returns when everything up to here was read.
    fn ping(&mut self) {
        self.frame(PING, 0, 0, b"anybody?");
        self.flush();
        let heard = self.pongs;
        while self.pongs == heard {
            self.hear();
        }
    }

    fn flush(&mut self) {
        self.socket.write_all(&std::mem::take(&mut self.waiting)).expect("the gateway reads");
    }

    fn hear(&mut self) {
        let mut header = [0; 9];
        self.socket.read_exact(&mut header).expect("the connection stands");
        let [a, b, c, kind, flags, .., stream] = header;
        let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
        self.socket.read_exact(&mut payload).expect("the connection stands");
        match kind {
            HEADERS => self.answer = payload.first().copied(),
            PING if flags & ACK != 0 => self.pongs += 1,
            WINDOW_UPDATE => {
                let more = u32::from_be_bytes(payload.try_into().expect("four bytes")) as usize;
                self.windows[usize::from(stream != 0)] += more;
            }
            7 => panic!("the connection is ended: {}", payload.escape_ascii()),
            _ => {}
        }
    }

    fn is_answered_well(&mut self) -> bool {
        self.flush();
        while self.answer.is_none() {
            self.hear();
        }
        // `:status: 200`, by its index.
        self.answer == Some(0x88)
    }
}
