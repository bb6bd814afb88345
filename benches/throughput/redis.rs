//! A Redis of its own for each proxy, and what a proxy says to it.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::peer::free_address;
use super::process::{Cores, Process};

/// A running server that writes nothing to disk, on the core of the proxies.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    _folder: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let address = free_address();
        let folder = tempfile::tempdir().expect("a folder for the server");
        let mut command = Cores::First.command(&["redis-server"]);
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--save", "", "--appendonly", "no"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let redis = Self { address, process: Process::start(command), _folder: folder };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "no redis-server on {address}");
            thread::sleep(Duration::from_millis(5));
        }
        redis
    }

    /// Runs one command and answers the first line of the reply, or of its one string.
    pub(crate) fn ask(&self, command: &[&[u8]]) -> String {
        let mut connection = BufReader::new(TcpStream::connect(self.address).expect("a server that runs"));
        connection.get_mut().write_all(&encode(command)).expect("an open connection");
        let line = line(&mut connection);
        if line.starts_with('$') { self::line(&mut connection) } else { line }
    }

    /// Memory that its data take, in bytes.
    pub(crate) fn used_memory(&self) -> String {
        let script = b"return string.match(redis.call('INFO', 'memory'), 'used_memory:(%d+)')";
        self.ask(&[b"EVAL", script, b"0"])
    }

    /// From now on, every command that this server gets.
    pub(crate) fn overheard(&self) -> impl Iterator<Item = Vec<Vec<u8>>> + use<> {
        let mut connection = BufReader::new(TcpStream::connect(self.address).expect("a server that runs"));
        connection.get_mut().write_all(&encode(&[b"MONITOR"])).expect("an open connection");
        assert_eq!(line(&mut connection), "+OK");
        std::iter::repeat_with(move || words(&line(&mut connection)))
    }
}

/// A command as the protocol has it.
pub(crate) fn encode(command: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn line(connection: &mut impl BufRead) -> String {
    let mut line = String::new();
    connection.read_line(&mut line).expect("an open connection");
    line.trim_end().to_owned()
}

/// The quoted words of a line of `MONITOR`.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = line.bytes();
    while bytes.any(|byte| byte == b'"') {
        let mut word = Vec::new();
        while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
            word.push(if byte == b'\\' { unescaped(&mut bytes) } else { byte });
        }
        words.push(word);
    }
    words
}

fn unescaped(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    match bytes.next().expect("an escape is two bytes") {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let mut digit = || char::from(bytes.next().unwrap_or(b'0')).to_digit(16).unwrap_or(0);
            u8::try_from(digit() * 16 + digit()).expect("two digits")
        }
        other => other,
    }
}
