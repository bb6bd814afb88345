//! The application behind the proxies: the same small answer to nearly everything, at as little cost as can be.

use std::io::Write;
use std::net;
use std::sync::LazyLock;
use std::thread;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::runtime;

use super::load::content_length;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The answer to `/large`.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1048576\r\n\r\n".to_vec();
    answer.resize(answer.len() + (1 << 20), b'x');
    answer
});

/// Serves with so many threads until it is killed; says its address on the first line.
pub(crate) fn serve(threads: usize) {
    let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
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
        if rest == 0 && stream.write_all(if is_large { &LARGE } else { ANSWER }).await.is_err() {
            return;
        }
    }
}
