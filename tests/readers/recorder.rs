//! A server that keeps what clients send.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::{io, thread};

/// What was sent to each path: the head as it came, and the body without its framing.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    address: SocketAddr,
    requests: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Recorder {
    /// Starts it. `page` is shown to browsers.
    pub(crate) fn start(page: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let recorder = Self { address, requests: Arc::default() };
        let serving = recorder.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let recorder = serving.clone();
                thread::spawn(move || while recorder.serve(&stream, page).is_ok() {});
            }
        });
        recorder
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What came so far.
    pub(crate) fn requests(&self) -> BTreeMap<String, Vec<u8>> {
        self.requests.lock().expect("no panic").clone()
    }

    /// Answers one request.
    fn serve(&self, mut stream: &TcpStream, page: &str) -> io::Result<()> {
        // One byte at a time: nothing of the next request is read.
        let mut reader = BufReader::with_capacity(1, stream);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let value = |name: &str| {
            let named = |line: &&str| line.get(..name.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(name));
            text.lines().find(named).map(|line| line[name.len()..].trim().to_owned())
        };
        if value("expect:").is_some() {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut body = Vec::new();
        if value("transfer-encoding:").is_some() {
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let length = usize::from_str_radix(line.trim(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
                let mut chunk = vec![0; length + 2];
                reader.read_exact(&mut chunk)?;
                body.extend_from_slice(&chunk[..length]);
                if length == 0 {
                    break;
                }
            }
        } else if let Some(length) = value("content-length:") {
            body.resize(length.parse().map_err(|_| io::ErrorKind::InvalidData)?, 0);
            reader.read_exact(&mut body)?;
        }
        let target = text.split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
        let shown = if text.starts_with("GET ") { page } else { "" };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{shown}",
            shown.len()
        );
        // First kept, then answered: whoever has the answer finds it here.
        let head = text.replace(&self.address.to_string(), "app.example");
        self.requests.lock().expect("no panic").insert(path, [head.as_bytes(), &body].concat());
        stream.write_all(answer.as_bytes())?;
        match value("connection:") {
            Some(value) if value.eq_ignore_ascii_case("close") => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }
}
