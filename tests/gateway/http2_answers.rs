//! Answers of an application over HTTP/2 that are malformed, frame by frame.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread;

use crate::support::Gateway;

/// Flags of HEADERS and DATA.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const HEADERS: u8 = 1;
const DATA: u8 = 0;

/// Not a frame: the application waits here.
const HOLD: u8 = 0xff;

/// A frame of an answer: its kind, its flags, and its payload.
type AnswerFrame = (u8, u8, &'static [u8]);

/// Answers each request with the same frames, written at once, and returns its address. What stands behind [`HOLD`] is
/// written when the gate opens.
fn application(answer: &'static [AnswerFrame], gate: &Arc<Barrier>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let gate = Arc::clone(gate);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let gate = Arc::clone(&gate);
            thread::spawn(move || serve(stream, answer, &gate));
        }
    });
    address
}

/// Returns when the gateway closes the connection.
fn serve(mut stream: TcpStream, answer: &[AnswerFrame], gate: &Barrier) -> Option<()> {
    stream.read_exact(&mut [0; 24]).ok()?;
    stream.write_all(b"\0\0\0\x04\0\0\0\0\0").ok()?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).ok()?;
        let [high, middle, low, kind, flags, id @ ..] = header;
        let length = u32::from_be_bytes([0, high, middle, low]);
        stream.read_exact(&mut vec![0; length as usize]).ok()?;
        match kind {
            HEADERS => {
                for part in answer.split_inclusive(|(kind, ..)| *kind == HOLD) {
                    let frames: Vec<_> = part.iter().filter(|(kind, ..)| *kind != HOLD).collect();
                    stream
                        .write_all(&frames.into_iter().flat_map(|frame| to_bytes(*frame, id)).collect::<Vec<_>>())
                        .ok()?;
                    if part.last().is_some_and(|(kind, ..)| *kind == HOLD) {
                        gate.wait();
                    }
                }
            }
            // SETTINGS are acknowledged.
            4 if flags & 1 == 0 => stream.write_all(b"\0\0\0\x04\x01\0\0\0\0").ok()?,
            _ => {}
        }
    }
}

fn to_bytes((kind, flags, payload): AnswerFrame, id: [u8; 4]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).expect("a short one").to_be_bytes();
    [&[high, middle, low, kind, flags][..], &id, payload].concat()
}

fn gateway(answer: &'static [AnswerFrame], gate: &Arc<Barrier>) -> Gateway {
    let address = application(answer, gate);
    Gateway::start(format!("upstream: app\nupstreams:\n  app: {{servers: ['http://{address}'], http2: true}}\n"))
}

#[test]
fn pseudo_fields_in_trailers_or_of_requests_are_malformed_answers() {
    const OK: &[u8] = b"\x88";
    const LAST: u8 = END_HEADERS | END_STREAM;
    let rows: &[(&str, &'static [AnswerFrame])] = &[
        (":path in the head", &[(HEADERS, LAST, b"\x88\x84")]),
        (":method in the head", &[(HEADERS, LAST, b"\x82\x88")]),
        (":scheme in the head", &[(HEADERS, LAST, b"\x88\x86")]),
        (":authority in the head", &[(HEADERS, LAST, b"\x88\x01\x01h")]),
        (":protocol in the head", &[(HEADERS, LAST, b"\x88\x00\x09:protocol\x01x")]),
        ("an unknown one in the head", &[(HEADERS, LAST, b"\x88\x00\x02:x\x01y")]),
        ("two of :status", &[(HEADERS, LAST, b"\x88\x89")]),
        (":status behind a field", &[(HEADERS, LAST, b"\x00\x01a\x01b\x88")]),
        ("no :status", &[(HEADERS, LAST, b"\x00\x01a\x01b")]),
        ("an informational answer alone", &[(HEADERS, LAST, b"\x08\x03103")]),
        (":path in an informational answer", &[(HEADERS, END_HEADERS, b"\x08\x03103\x84"), (HEADERS, LAST, OK)]),
        ("a name in capitals", &[(HEADERS, LAST, b"\x88\x00\x01A\x01b")]),
        ("a name that no token is", &[(HEADERS, LAST, b"\x88\x00\x03a b\x01b")]),
        (
            ":path in trailers",
            &[(HEADERS, END_HEADERS, OK), (DATA, 0, b"hello"), (HEADERS, LAST, b"\x00\x01a\x01b\x84")],
        ),
        (":status in trailers", &[(HEADERS, END_HEADERS, OK), (DATA, 0, b"hello"), (HEADERS, LAST, OK)]),
    ];
    for (what, answer) in rows {
        let gateway = gateway(answer, &no_gate());
        assert_eq!(gateway.get("/").status(), 502, "{what}");
        // No such answer is left on the connection for the next request.
        assert_eq!(gateway.get("/again").status(), 502, "{what}");
    }
}

#[test]
fn one_that_is_well_formed_passes_with_its_trailers() {
    let answer: &[AnswerFrame] = &[
        (HEADERS, END_HEADERS, b"\x08\x03103\x00\x04link\x03</>"),
        (HEADERS, END_HEADERS, b"\x88"),
        (DATA, 0, b"hello"),
        (HEADERS, END_HEADERS | END_STREAM, b"\x00\x01a\x01b"),
    ];
    let answer = gateway(answer, &no_gate()).get("/").send();
    assert_eq!((answer.status, answer.text(), answer.whole), (200, "hello".to_owned(), true));
}

#[test]
fn an_answer_whose_trailers_turn_out_malformed_is_cut_short() {
    let gate = Arc::new(Barrier::new(2));
    let gateway = gateway(
        &[
            (HEADERS, END_HEADERS, b"\x88"),
            (DATA, 0, b"hello"),
            (HOLD, 0, b""),
            (HEADERS, END_HEADERS | END_STREAM, b"\x84"),
        ],
        &gate,
    );
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: app.example\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    gate.wait();
    let rest = String::from_utf8(client.rest()).expect("text");
    assert!(rest.contains("hello") && !rest.contains("\r\n0\r\n"), "{rest}");
}

fn no_gate() -> Arc<Barrier> {
    Arc::new(Barrier::new(1))
}
