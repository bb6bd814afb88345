//! Requests over HTTP/2 that all leave in one packet, as in an attack on races.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Posts each form to `path` on a stream of its own, all in one write, and waits until every stream is answered whole.
pub(super) fn post_in_one_packet(address: SocketAddr, path: &str, forms: &[String]) {
    let mut packet = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(&mut packet, SETTINGS, 0, 0, &[]);
    let streams: Vec<u32> = (0..).map(|number| 2 * number + 1).take(forms.len()).collect();
    for (&stream, form) in streams.iter().zip(forms) {
        frame(&mut packet, HEADERS, END_HEADERS, stream, &fields(path));
        frame(&mut packet, DATA, END_STREAM, stream, form.as_bytes());
    }
    assert!(packet.len() < 60_000, "more than a packet of the loopback takes");
    let mut stream = TcpStream::connect(address).expect("the gateway accepts connections");
    stream.set_nodelay(true).expect("a connected socket");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout above zero");
    stream.write_all(&packet).expect("an open connection");
    let mut open: HashSet<u32> = streams.into_iter().collect();
    while !open.is_empty() {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("an answer on every stream");
        let [_, _, _, kind, flags, id @ ..] = head;
        let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).expect("a whole frame");
        let id = u32::from_be_bytes(id);
        assert!(kind != RST_STREAM, "stream {id} was reset");
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            open.remove(&id);
        }
    }
}

fn frame(packet: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    packet.extend_from_slice(&length[1..]);
    packet.extend([kind, flags]);
    packet.extend(stream.to_be_bytes());
    packet.extend_from_slice(payload);
}

/// A block that needs no state: `:method: POST` and `:scheme: http` by their number, the rest spelled out.
fn fields(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    // `:path`, `:authority` and `content-type` are names of the static table.
    for (name, value) in [(&[0x04][..], path), (&[0x01], "app.example"), (&[0x0f, 0x10], FORM)] {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).expect("a short value"));
        block.extend_from_slice(value.as_bytes());
    }
    block
}

const FORM: &str = "application/x-www-form-urlencoded";
