//! An application whose accept queue is full.

use std::net::SocketAddr;

use futures_util::future::join_all;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A listener that is not accepting, and the connections that fill its queue.
async fn full_queue() -> (TcpListener, Vec<TcpStream>) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.listen(16).unwrap();
    socket.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(socket.into()).unwrap();
    let queue = fill_queue(listener.local_addr().unwrap()).await;
    (listener, queue)
}

async fn fill_queue(address: SocketAddr) -> Vec<TcpStream> {
    let mut queue = Vec::new();
    while let Ok(connected) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        queue.push(connected.unwrap());
    }
    queue
}

/// Answers every request of a connection, each after a while.
async fn answer_all(mut stream: TcpStream) {
    let mut head = [0; 1024];
    while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    }
}

fn upstream_at(address: SocketAddr, connect: Duration) -> Arc<Upstream> {
    let server = http::uri::Authority::try_from(address.to_string()).unwrap();
    let timeouts = Timeouts { connect, response: LONG, idle: LONG };
    Upstream::new(UpstreamSettings { servers: vec![server.into()], timeouts, ..settings(&[]) })
}

/// The kernel sends the first packet of a connection again only after a second.
#[tokio::test]
async fn a_connection_that_found_no_place_is_tried_again_within_its_time() {
    let (listener, queue) = full_queue().await;
    let upstream = upstream_at(listener.local_addr().unwrap(), Duration::from_millis(900));
    let pool = Pool::new();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(queue);
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_all(stream));
        }
    });

    let answers = join_all((0..8).map(|_| send(&pool, &upstream, get()))).await;

    let failed: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn a_request_that_cannot_connect_takes_the_next_idle_connection() {
    let (listener, queue) = full_queue().await;
    let address = listener.local_addr().unwrap();
    let upstream = upstream_at(address, LONG);
    let pool = Pool::new();
    for _ in &queue {
        listener.accept().await.unwrap();
    }
    let first = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _queue = fill_queue(address).await;
        answer_all(stream).await;
        drop(listener);
    });
    send(&pool, &upstream, get()).await.unwrap();

    let answers = join_all((0..8).map(|_| send(&pool, &upstream, get()))).await;

    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    first.abort();
}
