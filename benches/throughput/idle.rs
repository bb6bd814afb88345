//! Many connections that have asked once and then wait.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::load;

/// Opens so many connections, asks once on each, says so, and holds them until its input ends.
pub(crate) fn hold(address: &str, count: &str) {
    let address: SocketAddr = address.parse().expect("an address");
    let count: usize = count.parse().expect("a number");
    let request = load::request("/");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let held: Vec<TcpStream> = runtime.block_on(async {
        let mut held = Vec::with_capacity(count);
        let mut buffer = Vec::with_capacity(16 * 1024);
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await.expect("the proxy accepts");
            stream.write_all(&request).await.expect("an open connection");
            load::answer(&mut stream, &mut buffer).await.expect("an answer");
            held.push(stream);
        }
        held
    });
    println!("{}", held.len());
    std::io::stdout().flush().expect("someone waits for it");
    let _ = std::io::stdin().read(&mut [0]);
}
