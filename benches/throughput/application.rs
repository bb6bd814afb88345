//! The application behind the proxies: the same small answer to everything, at as little cost as can be.

use std::io::Write;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Serves until it is killed; says its address on the first line.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        println!("{}", listener.local_addr().expect("bound"));
        std::io::stdout().flush().expect("someone reads the address");
        loop {
            let (stream, _) = listener.accept().await.expect("descriptors are left");
            tokio::spawn(answer(stream));
        }
    });
}

/// Requests here have no body and are never sent ahead: a head ends where a read does.
async fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("a connected socket");
    let mut head = Vec::with_capacity(4096);
    while let Ok(length) = stream.read_buf(&mut head).await {
        if length == 0 {
            return;
        }
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
        }
    }
}
