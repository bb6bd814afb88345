//! The application behind the proxies: the same small answer to nearly everything, at as little cost as can be.

use std::io::Write;
use std::sync::LazyLock;
use std::{net, thread};

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use super::load::content_length;

static ANSWER: LazyLock<Vec<u8>> = LazyLock::new(|| answer_of("text/html; charset=utf-8", 64));

/// The answer to `/large`.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| answer_of("application/octet-stream", 1 << 20));

/// An answer with the ten fields that a framework sends with a page.
fn answer_of(media_type: &str, length: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n\
         Date: Mon, 05 Jan 2026 10:00:00 GMT\r\n\
         Server: application/1.0\r\n\
         Content-Type: {media_type}\r\n\
         Content-Length: {length}\r\n\
         Cache-Control: private, max-age=0, must-revalidate\r\n\
         ETag: \"0123456789abcdef\"\r\n\
         Last-Modified: Sun, 04 Jan 2026 10:00:00 GMT\r\n\
         Vary: Accept-Encoding, Cookie\r\n\
         Set-Cookie: seen=1; Path=/; Secure; HttpOnly; SameSite=Lax\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    answer.resize(answer.len() + length, b'x');
    answer
}

/// Serves with so many threads until it is killed; says its address on the first line.
pub(crate) fn serve(threads: usize) {
    let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    // Thousands of connections may be opened at once.
    SockRef::from(&listener).listen(4096).expect("a socket that listens");
    listener.set_nonblocking(true).expect("a socket");
    println!("{}", listener.local_addr().expect("bound"));
    std::io::stdout().flush().expect("someone reads the address");
    let serve = || {
        let listener = listener.try_clone().expect("descriptors are left");
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(accept(listener));
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(serve);
        }
    });
}

async fn accept(listener: net::TcpListener) {
    let listener = TcpListener::from_std(listener).expect("a socket that does not block");
    loop {
        let (stream, _) = listener.accept().await.expect("descriptors are left");
        tokio::spawn(answer(stream));
    }
}

/// Requests are never sent ahead.
async fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("a connected socket");
    let (mut head, mut rest, mut is_large) = (Vec::with_capacity(64 * 1024), 0, false);
    while let Ok(length) = stream.read_buf(&mut head).await {
        if length == 0 {
            return;
        }
        if rest > 0 {
            rest = usize::saturating_sub(rest, length);
            head.clear();
        } else if let Some(end) = memchr::memmem::find(&head, b"\r\n\r\n") {
            rest = content_length(&head[..end]).unwrap_or_default().saturating_sub(head.len() - end - 4);
            is_large = head.starts_with(b"GET /large ");
            head.clear();
        } else {
            continue;
        }
        if rest == 0 && stream.write_all(if is_large { &LARGE } else { &ANSWER }).await.is_err() {
            return;
        }
    }
}
