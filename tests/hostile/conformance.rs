//! What RFC 9113 and RFC 7541 demand of a server, row by row in the order of their sections: the cases that h2spec tries.

use std::io;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use self::Demand::{Answer, Connection, Ends, Goes, Stream};
use crate::frames::{END_HEADERS, END_STREAM, Field, block, data, frame, head};
use crate::support::{Gateway, Origin};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const COMPRESSION_ERROR: u32 = 9;

/// What must come of what was sent.
#[derive(Clone, Copy, Debug)]
enum Demand {
    /// The connection goes on: a PING is answered.
    Goes,
    /// Stream 1 is answered with 200.
    Answer,
    /// GOAWAY with one of these codes, and then the end.
    Connection(&'static [u32]),
    /// The connection ends, with GOAWAY or without.
    Ends,
    /// `RST_STREAM` of this stream with one of these codes, or GOAWAY with one of them.
    Stream(u32, &'static [u32]),
}

struct Row {
    section: &'static str,
    name: &'static str,
    sent: Vec<u8>,
    demand: Demand,
}

const GET: &[Field<'static>] = &[(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")];
const POST: &[Field<'static>] =
    &[(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")];

fn get(stream: u32) -> Vec<u8> {
    head(stream, true, GET)
}

/// A request whose body is still to come.
fn post(stream: u32) -> Vec<u8> {
    head(stream, false, POST)
}

/// The usual fields of a GET, and these behind them.
fn with(more: &[Field<'_>]) -> Vec<u8> {
    head(1, true, &[GET, more].concat())
}

/// A frame of HEADERS for stream 1 with these flags.
fn headers(flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(HEADERS, flags, 1, payload)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn setting(number: u8, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&[0, number][..], &value.to_be_bytes()].concat())
}

/// The settings of the client are answered before what follows is read.
fn row(section: &'static str, name: &'static str, parts: &[Vec<u8>], demand: Demand) -> Row {
    Row { section, name, sent: parts.concat(), demand }
}

#[test]
fn every_demand_is_met() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let rows: Vec<Row> =
        [starting(), frames(), streams(), frame_kinds(), settings_and_windows(), messages(), compression()]
            .into_iter()
            .flatten()
            .collect();
    assert!(rows.len() >= 130, "{} rows", rows.len());
    let wrong: Vec<String> = rows.iter().filter_map(|row| meets(&gateway, row).err()).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn meets(gateway: &Gateway, row: &Row) -> Result<(), String> {
    let mut socket = gateway.connect().into_stream();
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout above zero");
    // In one write: behind a GOAWAY, a gateway without requests may close. That it has closed by now shows when reading.
    let ping = if matches!(row.demand, Goes) { frame(PING, 0, 0, b"are you?") } else { Vec::new() };
    let _ = socket.write_all(&[&row.sent[..], &ping].concat());
    let mut seen = Vec::new();
    loop {
        let (kind, flags, stream, payload) = match read_frame(&mut socket) {
            Ok(frame) => frame,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) if matches!(row.demand, Ends) => return Ok(()),
            Err(_) => break,
        };
        let code = |at: usize| payload.get(at..at + 4).map(|code| u32::from_be_bytes(code.try_into().expect("four")));
        let is_met = match (row.demand, kind) {
            (Goes, PING) => flags == ACK && payload == b"are you?",
            (Answer, HEADERS) => stream == 1 && payload.first() == Some(&0x88),
            (Ends, GOAWAY) => true,
            (Connection(codes) | Stream(_, codes), GOAWAY) => code(4).is_some_and(|code| codes.contains(&code)),
            (Stream(of, codes), RST_STREAM) => stream == of && code(0).is_some_and(|code| codes.contains(&code)),
            _ => false,
        };
        if is_met {
            return Ok(());
        }
        seen.push(format!("{kind} on {stream} {:?}", if kind == GOAWAY { code(4) } else { code(0) }));
    }
    Err(format!("{} {}: {:?}, seen {}", row.section, row.name, row.demand, seen.join(", ")))
}

fn read_frame(socket: &mut TcpStream) -> io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut header = [0; 9];
    socket.read_exact(&mut header)?;
    let [high, middle, low, kind, flags, stream @ ..] = header;
    let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
    socket.read_exact(&mut payload)?;
    Ok((kind, flags, u32::from_be_bytes(stream), payload))
}

/// The connection as a client opens it.
fn open() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, b"")].concat()
}

fn on_open(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().map(|row| Row { sent: [open(), row.sent].concat(), ..row }).collect()
}

/// How a connection begins (RFC 9113, section 3.4).
fn starting() -> Vec<Row> {
    let bad = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r".to_vec();
    let preface = || b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    vec![
        row("3.4", "the preface and settings", &[preface(), frame(SETTINGS, 0, 0, b"")], Goes),
        row("3.4", "a GET right behind the preface", &[preface(), frame(SETTINGS, 0, 0, b""), get(1)], Answer),
        row("3.4", "settings that say something", &[preface(), setting(3, 100), get(1)], Answer),
        row("3.4", "a preface with a wrong end, and settings", &[bad, setting(3, 100)], Ends),
    ]
}

/// Frames in general, and parts of heads (sections 4.1 to 4.3, 5.5).
fn frames() -> Vec<Row> {
    let full = vec![b'x'; 1 << 14];
    let too_long = vec![b'x'; (1 << 14) + 1];
    let half = || headers(END_STREAM, &block(GET));
    on_open(vec![
        row("4.1", "a frame of an unknown kind", &[frame(0x16, 0, 0, &[0; 8])], Goes),
        row("4.1", "a frame of an unknown kind on a stream", &[frame(0x16, 0xff, 7, &[0; 8])], Goes),
        row("4.1", "flags without a meaning", &[frame(PING, 0x16, 0, &[0; 8])], Goes),
        row("4.1", "the reserved bit", &[frame(PING, 0, 1 << 31, &[0; 8])], Goes),
        row("4.2", "DATA of the greatest length", &[post(1), data(1, true, &full)], Answer),
        row("4.2", "DATA beyond that", &[post(1), data(1, true, &too_long)], Stream(1, &[FRAME_SIZE_ERROR])),
        row(
            "4.2",
            "HEADERS beyond that",
            &[headers(END_STREAM | END_HEADERS, &[&block(GET)[..], &too_long].concat())],
            Connection(&[FRAME_SIZE_ERROR]),
        ),
        row("4.2", "an unknown frame beyond that", &[frame(0x16, 0, 0, &too_long)], Connection(&[FRAME_SIZE_ERROR])),
        row(
            "4.3",
            "a head that is none",
            &[headers(END_STREAM | END_HEADERS, b"\0\0\0\0\0")],
            Connection(&[COMPRESSION_ERROR]),
        ),
        row(
            "4.3",
            "a head that ends within a field",
            &[headers(END_STREAM | END_HEADERS, &[0, 5, b'a'])],
            Connection(&[COMPRESSION_ERROR]),
        ),
        row(
            "4.3",
            "PRIORITY within a head",
            &[half(), frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255])],
            Connection(&[PROTOCOL_ERROR]),
        ),
        row("4.3", "HEADERS of another stream within a head", &[half(), get(3)], Connection(&[PROTOCOL_ERROR])),
        row("5.5", "an unknown frame between heads", &[get(1), frame(0x16, 0, 0, &[0; 8])], Answer),
        row(
            "5.5",
            "an unknown frame within a head",
            &[half(), frame(0x16, 0, 0, &[0; 8])],
            Connection(&[PROTOCOL_ERROR]),
        ),
        row(
            "4.3",
            "a head in three frames",
            &[
                headers(END_STREAM, &block(&GET[..2])),
                frame(CONTINUATION, 0, 1, &block(&GET[2..3])),
                frame(CONTINUATION, END_HEADERS, 1, &block(&GET[3..])),
            ],
            Answer,
        ),
    ])
}

/// The states of streams, their numbers and how many there may be (sections 5.1 and 5.3).
fn streams() -> Vec<Row> {
    const CLOSED: &[u32] = &[STREAM_CLOSED];
    const EITHER: &[u32] = &[STREAM_CLOSED, PROTOCOL_ERROR];
    let continuation = |stream| frame(CONTINUATION, END_HEADERS, stream, &block(&[(b"a", b"b")]));
    let many: Vec<u8> = (0..400).flat_map(|n| post(2 * n + 1)).collect();
    on_open(vec![
        row("5.1", "DATA on an idle stream", &[data(1, true, b"x")], Connection(&[PROTOCOL_ERROR])),
        row("5.1", "RST_STREAM of an idle stream", &[reset(1)], Connection(&[PROTOCOL_ERROR])),
        row("5.1", "WINDOW_UPDATE of an idle stream", &[window(1, 100)], Connection(&[PROTOCOL_ERROR])),
        row("5.1", "CONTINUATION on an idle stream", &[continuation(1)], Connection(&[PROTOCOL_ERROR])),
        row("5.1", "PRIORITY of an idle stream", &[frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255]), get(1)], Answer),
        row("5.1", "DATA on a stream that the client has ended", &[get(1), data(1, true, b"x")], Stream(1, CLOSED)),
        row("5.1", "HEADERS on a stream that the client has ended", &[get(1), get(1)], Stream(1, CLOSED)),
        row("5.1", "CONTINUATION on a stream that the client has ended", &[get(1), continuation(1)], Stream(1, EITHER)),
        row("5.1", "WINDOW_UPDATE of a stream that the client has ended", &[get(1), window(1, 1)], Answer),
        row(
            "5.1",
            "PRIORITY of a stream that the client has ended",
            &[get(1), frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255])],
            Answer,
        ),
        row("5.1", "RST_STREAM of a stream that the client has ended", &[get(1), reset(1)], Goes),
        row("5.1", "DATA behind RST_STREAM", &[post(1), reset(1), data(1, true, b"x")], Stream(1, CLOSED)),
        row("5.1", "HEADERS behind RST_STREAM", &[post(1), reset(1), get(1)], Stream(1, CLOSED)),
        row("5.1", "CONTINUATION behind RST_STREAM", &[post(1), reset(1), continuation(1)], Stream(1, EITHER)),
        row("5.1", "PRIORITY behind RST_STREAM", &[post(1), reset(1), frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255])], Goes),
        row("5.1", "WINDOW_UPDATE behind RST_STREAM", &[post(1), reset(1), window(1, 1)], Goes),
        row("5.1.1", "a stream with an even number", &[get(2)], Connection(&[PROTOCOL_ERROR])),
        row("5.1.1", "a stream below the last one", &[get(5), get(3)], Connection(&[PROTOCOL_ERROR])),
        row(
            "5.1.1",
            "a stream below the last one that was passed over",
            &[get(1), get(7), get(5)],
            Connection(&[PROTOCOL_ERROR]),
        ),
        row("5.1.1", "streams with gaps", &[get(3), get(1001)], Goes),
        row("5.1.2", "more streams at once than allowed", &[many], Stream(257, &[REFUSED_STREAM, PROTOCOL_ERROR])),
        row(
            "5.3.1",
            "HEADERS that depend on their own stream",
            &[headers(END_STREAM | END_HEADERS | WITH_PRIORITY, &[&[0, 0, 0, 1, 255][..], &block(GET)].concat())],
            Answer,
        ),
        row(
            "5.3.1",
            "a stream that depends on another",
            &[headers(END_STREAM | END_HEADERS | WITH_PRIORITY, &[&[0, 0, 0, 3, 255][..], &block(GET)].concat())],
            Answer,
        ),
    ])
}

/// What each kind of frame must be (sections 6.1 to 6.4, 6.7, 6.8, 6.10, 7).
fn frame_kinds() -> Vec<Row> {
    const SIZE: Demand = Connection(&[FRAME_SIZE_ERROR]);
    const ON_CONNECTION: Demand = Connection(&[PROTOCOL_ERROR]);
    let half = || headers(END_STREAM, &block(GET));
    let whole = || headers(END_STREAM | END_HEADERS, &block(GET));
    let continuation = |flags, stream| frame(CONTINUATION, flags, stream, &block(&[(b"a", b"b")]));
    on_open(vec![
        row("6.1", "DATA", &[post(1), data(1, true, b"x")], Answer),
        row("6.1", "DATA in two frames", &[post(1), data(1, false, b"x"), data(1, true, b"y")], Answer),
        row("6.1", "DATA with padding", &[post(1), frame(DATA, END_STREAM | PADDED, 1, &[2, b'x', 0, 0])], Answer),
        row("6.1", "DATA on the connection", &[data(0, true, b"x")], ON_CONNECTION),
        row(
            "6.1",
            "DATA with more padding than payload",
            &[post(1), frame(DATA, END_STREAM | PADDED, 1, &[9, b'x'])],
            ON_CONNECTION,
        ),
        row("6.2", "HEADERS", &[whole()], Answer),
        row(
            "6.2",
            "HEADERS with padding",
            &[headers(END_STREAM | END_HEADERS | PADDED, &[&[3][..], &block(GET), &[0; 3]].concat())],
            Answer,
        ),
        row(
            "6.2",
            "HEADERS with a priority",
            &[headers(END_STREAM | END_HEADERS | WITH_PRIORITY, &[&[0, 0, 0, 0, 9][..], &block(GET)].concat())],
            Answer,
        ),
        row("6.2", "HEADERS on the connection", &[get(0)], ON_CONNECTION),
        row(
            "6.2",
            "HEADERS with more padding than payload",
            &[headers(END_STREAM | END_HEADERS | PADDED, &[&[255][..], &block(GET)].concat())],
            ON_CONNECTION,
        ),
        row("6.2", "HEADERS without an end, then PING", &[half(), frame(PING, 0, 0, &[0; 8])], ON_CONNECTION),
        row("6.3", "PRIORITY", &[frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]), get(1)], Answer),
        row("6.3", "PRIORITY, exclusive", &[frame(PRIORITY, 0, 1, &[128, 0, 0, 0, 255]), get(1)], Answer),
        row("6.3", "PRIORITY of an idle stream on another", &[frame(PRIORITY, 0, 1, &[0, 0, 0, 5, 1]), get(1)], Answer),
        row("6.3", "PRIORITY on the connection", &[frame(PRIORITY, 0, 0, &[0, 0, 0, 1, 1])], ON_CONNECTION),
        row(
            "6.3",
            "PRIORITY of another length",
            &[get(1), frame(PRIORITY, 0, 1, &[128, 0, 0, 1])],
            Stream(1, &[FRAME_SIZE_ERROR]),
        ),
        row("6.4", "RST_STREAM", &[post(1), reset(1)], Goes),
        row("6.4", "RST_STREAM of the connection", &[reset(0)], ON_CONNECTION),
        row("6.4", "RST_STREAM of another length", &[post(1), frame(RST_STREAM, 0, 1, &[0, 0, 8])], SIZE),
        row(
            "6.6",
            "PUSH_PROMISE",
            &[frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &block(GET)].concat())],
            ON_CONNECTION,
        ),
        row("6.7", "PING", &[], Goes),
        row("6.7", "an answer to no PING", &[frame(PING, ACK, 0, b"whatever")], Goes),
        row("6.7", "PING on a stream", &[frame(PING, 0, 1, &[0; 8])], ON_CONNECTION),
        row("6.7", "PING of another length", &[frame(PING, 0, 0, &[0; 6])], SIZE),
        row("6.8", "GOAWAY on a stream", &[frame(GOAWAY, 0, 1, &[0; 8])], ON_CONNECTION),
        row("6.10", "two CONTINUATIONs", &[half(), continuation(0, 1), continuation(END_HEADERS, 1)], Answer),
        row("6.10", "CONTINUATION, then HEADERS", &[half(), continuation(0, 1), get(3)], ON_CONNECTION),
        row("6.10", "CONTINUATION on the connection", &[half(), continuation(END_HEADERS, 0)], ON_CONNECTION),
        row("6.10", "CONTINUATION of another stream", &[half(), continuation(END_HEADERS, 3)], ON_CONNECTION),
        row("6.10", "CONTINUATION behind a whole head", &[whole(), continuation(END_HEADERS, 1)], ON_CONNECTION),
        row(
            "6.10",
            "CONTINUATION behind the last CONTINUATION",
            &[half(), continuation(END_HEADERS, 1), continuation(END_HEADERS, 1)],
            ON_CONNECTION,
        ),
        row(
            "6.10",
            "CONTINUATION behind DATA",
            &[post(1), data(1, false, b"x"), continuation(END_HEADERS, 1)],
            ON_CONNECTION,
        ),
        row("7", "GOAWAY with an unknown code", &[frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 255])], Goes),
        row("7", "RST_STREAM with an unknown code", &[post(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 255])], Goes),
    ])
}

/// Settings and windows (sections 6.5 and 6.9).
fn settings_and_windows() -> Vec<Row> {
    const SIZE: Demand = Connection(&[FRAME_SIZE_ERROR]);
    const ON_CONNECTION: Demand = Connection(&[PROTOCOL_ERROR]);
    let (enable_push, initial_window, max_frame) = (2, 4, 5);
    on_open(vec![
        row("6.5", "SETTINGS", &[setting(3, 7)], Goes),
        row("6.5", "an acknowledgement with a payload", &[frame(SETTINGS, ACK, 0, &[0])], SIZE),
        row("6.5", "SETTINGS on a stream", &[frame(SETTINGS, 0, 1, &[0, 3, 0, 0, 0, 7])], ON_CONNECTION),
        row("6.5", "SETTINGS of another length", &[frame(SETTINGS, 0, 0, &[0, 3, 0])], SIZE),
        row("6.5.2", "ENABLE_PUSH that is neither 0 nor 1", &[setting(enable_push, 2)], ON_CONNECTION),
        row("6.5.2", "ENABLE_PUSH of 0", &[setting(enable_push, 0)], Goes),
        row(
            "6.5.2",
            "INITIAL_WINDOW_SIZE beyond the greatest",
            &[setting(initial_window, 1 << 31)],
            Connection(&[FLOW_CONTROL_ERROR]),
        ),
        row("6.5.2", "MAX_FRAME_SIZE below the least", &[setting(max_frame, (1 << 14) - 1)], ON_CONNECTION),
        row("6.5.2", "MAX_FRAME_SIZE beyond the greatest", &[setting(max_frame, 1 << 24)], ON_CONNECTION),
        row("6.5.2", "an unknown setting", &[setting(255, 1)], Goes),
        row(
            "6.5.3",
            "one setting twice, the last one counts",
            &[frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0xff, 0xff]), get(1)],
            Answer,
        ),
        row("6.9", "WINDOW_UPDATE of the connection", &[window(0, 1)], Goes),
        row("6.9", "WINDOW_UPDATE of a stream", &[post(1), window(1, 1)], Goes),
        row("6.9", "WINDOW_UPDATE of the connection by 0", &[window(0, 0)], ON_CONNECTION),
        row("6.9", "WINDOW_UPDATE of a stream by 0", &[post(1), window(1, 0)], Stream(1, &[PROTOCOL_ERROR])),
        row("6.9", "WINDOW_UPDATE of another length", &[frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1])], SIZE),
        row(
            "6.9.1",
            "a window of the connection beyond the greatest",
            &[window(0, i32::MAX.unsigned_abs()), window(0, i32::MAX.unsigned_abs())],
            Connection(&[FLOW_CONTROL_ERROR]),
        ),
        row(
            "6.9.1",
            "a window of a stream beyond the greatest",
            &[post(1), window(1, i32::MAX.unsigned_abs()), window(1, i32::MAX.unsigned_abs())],
            Stream(1, &[FLOW_CONTROL_ERROR]),
        ),
        row(
            "6.9.2",
            "a window that opens after the request",
            &[setting(initial_window, 0), get(1), setting(initial_window, 100)],
            Answer,
        ),
        row(
            "6.9.2",
            "a window that becomes negative and opens again",
            &[setting(initial_window, 3), get(1), setting(initial_window, 0), window(1, 100)],
            Answer,
        ),
        row(
            "6.9.2",
            "a window that a setting makes too great",
            &[post(1), window(1, i32::MAX.unsigned_abs() - 65535), setting(initial_window, 65536)],
            Stream(1, &[FLOW_CONTROL_ERROR]),
        ),
    ])
}

/// Requests (section 8).
fn messages() -> Vec<Row> {
    const MALFORMED: Demand = Stream(1, &[PROTOCOL_ERROR]);
    let without = |left_out: &[u8]| {
        let fields: Vec<Field<'_>> = GET.iter().copied().filter(|(name, _)| *name != left_out).collect();
        head(1, true, &fields)
    };
    let of_length = |length: &[u8]| head(1, false, &[POST, &[(b"content-length", length)]].concat());
    let trailers = |ends, fields: &[Field<'_>]| head(1, ends, fields);
    let path = |path: &[u8]| head(1, true, &[GET[0], GET[1], (b":path", path), GET[3]]);
    on_open(vec![
        row("8.1", "a GET", &[get(1)], Answer),
        row("8.1", "a HEAD", &[head(1, true, &[(b":method", b"HEAD"), GET[1], GET[2], GET[3]])], Answer),
        row("8.1", "a POST", &[post(1), data(1, true, b"x")], Answer),
        row(
            "8.1",
            "a POST with trailers",
            &[post(1), data(1, false, b"x"), trailers(true, &[(b"x-test", b"ok")])],
            Answer,
        ),
        row(
            "8.1",
            "trailers that do not end the stream",
            &[post(1), trailers(false, &[(b"x-test", b"ok")])],
            MALFORMED,
        ),
        row("8.2", "a field name in capitals", &[with(&[(b"X-Test", b"ok")])], MALFORMED),
        row("8.2.2", "Connection", &[with(&[(b"connection", b"keep-alive")])], MALFORMED),
        row("8.2.2", "TE other than trailers", &[with(&[(b"te", b"trailers, deflate")])], MALFORMED),
        row("8.2.2", "TE: trailers", &[with(&[(b"te", b"trailers")])], Answer),
        row("8.2.3", "cookies in two fields", &[with(&[(b"cookie", b"a=b"), (b"cookie", b"c=d")])], Answer),
        row("8.3", "an unknown pseudo-field", &[with(&[(b":test", b"ok")])], MALFORMED),
        row("8.3", "a pseudo-field of answers", &[with(&[(b":status", b"200")])], MALFORMED),
        row(
            "8.3",
            "a pseudo-field in trailers",
            &[post(1), data(1, false, b"x"), trailers(true, &[(b":method", b"200")])],
            MALFORMED,
        ),
        row(
            "8.3",
            "a pseudo-field behind another field",
            &[head(1, true, &[GET[0], GET[1], (b"x-test", b"ok"), GET[2], GET[3]])],
            MALFORMED,
        ),
        row("8.3.1", "an empty path", &[path(b"")], MALFORMED),
        row("8.3.1", "no method", &[without(b":method")], MALFORMED),
        row("8.3.1", "no scheme", &[without(b":scheme")], MALFORMED),
        row("8.3.1", "no path", &[without(b":path")], MALFORMED),
        row("8.3.1", "two methods", &[head(1, true, &[GET, &GET[..1]].concat())], MALFORMED),
        row("8.3.1", "two schemes", &[head(1, true, &[GET, &GET[1..2]].concat())], MALFORMED),
        row("8.3.1", "two paths", &[head(1, true, &[GET, &GET[2..3]].concat())], MALFORMED),
        row("8.1.1", "less DATA than Content-Length", &[of_length(b"5"), data(1, true, b"test")], MALFORMED),
        row("8.1.1", "more DATA than Content-Length", &[of_length(b"1"), data(1, true, b"test")], MALFORMED),
        row(
            "8.1.1",
            "more DATA in two frames",
            &[of_length(b"1"), data(1, false, b"te"), data(1, true, b"st")],
            MALFORMED,
        ),
        row(
            "8.1.1",
            "a Content-Length and no DATA",
            &[head(1, true, &[POST, &[(b"content-length", b"1")]].concat())],
            MALFORMED,
        ),
    ])
}

/// Compressed heads (RFC 7541). The usual fields stand before what is tried.
fn compression() -> Vec<Row> {
    const BROKEN: Demand = Connection(&[COMPRESSION_ERROR]);
    let head_of = |more: &[u8]| headers(END_STREAM | END_HEADERS, &[&block(GET)[..], more].concat());
    let before = |first: &[u8]| headers(END_STREAM | END_HEADERS, &[first, &block(GET)].concat());
    let indexed = b"\x82\x86\x84\x41\x01a";
    on_open(vec![
        row("HPACK 2.3.3", "an index beyond both tables", &[head_of(&[0xff, 0x00])], BROKEN),
        row("HPACK 2.3.3", "a name by an index beyond both tables", &[head_of(&[0x7f, 0x7f, 0x01, b'x'])], BROKEN),
        row("HPACK 4.2", "the size of the table behind a field", &[head_of(&[0x20])], BROKEN),
        row("HPACK 4.2", "the size of the table before all fields", &[before(&[0x20])], Answer),
        row("HPACK 4.2", "two sizes of the table", &[before(&[0x20, 0x3f, 0x11])], Answer),
        row(
            "HPACK 5.2",
            "padding of Huffman's code beyond 7 bits",
            &[head_of(b"\0\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff")],
            BROKEN,
        ),
        row(
            "HPACK 5.2",
            "padding of Huffman's code that is zeros",
            &[head_of(b"\0\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90")],
            BROKEN,
        ),
        row(
            "HPACK 5.2",
            "the end of Huffman's code as a letter",
            &[head_of(b"\0\x85\xf2\xb2\x4a\x84\xff\x87\xff\xff\xff\xfa\x87\x33\x88")],
            BROKEN,
        ),
        row("HPACK 6.1", "the index 0", &[head_of(&[0x80])], BROKEN),
        row("HPACK 6.1", "fields by their index", &[headers(END_STREAM | END_HEADERS, indexed)], Answer),
        row("HPACK 6.2.1", "a field that is kept, and used", &[head_of(b"\x40\x06x-test\x02ok\xbe")], Answer),
        row("HPACK 6.2.2", "a field that is not kept", &[head_of(b"\x00\x06x-test\x02ok")], Answer),
        row("HPACK 6.2.3", "a field that is never kept", &[head_of(b"\x10\x06x-test\x02ok")], Answer),
        row("HPACK 6.2.2", "a field whose name has an index", &[head_of(b"\x0f\x2b\x04test")], Answer),
        row(
            "HPACK 5.2",
            "names and values in Huffman's code",
            &[head_of(b"\x40\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x9f")],
            Answer,
        ),
        row("HPACK 6.3", "a table beyond what was allowed", &[before(&[0x3f, 0xe2, 0x1f])], BROKEN),
    ])
}
