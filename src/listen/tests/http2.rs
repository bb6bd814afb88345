use h2::client::SendRequest;

use super::*;
use crate::rules::client::Networks;

/// Connects with prior knowledge. The second value is how the connection ended.
async fn connect(server: &Server) -> (SendRequest<Bytes>, tokio::task::JoinHandle<Result<(), h2::Error>>) {
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    (sender, tokio::spawn(connection))
}

async fn get(sender: &mut SendRequest<Bytes>, path: &str) -> Result<http::Response<h2::RecvStream>, h2::Error> {
    let request = http::Request::get(format!("http://a{path}")).body(()).unwrap();
    std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
    let (answer, _) = sender.send_request(request, true)?;
    answer.await
}

#[tokio::test]
async fn a_connection_without_a_whole_request_is_closed_by_the_header_timeout() {
    let server = Server::start(ConnectionSettings { header: SHORT, ..settings() });
    let (opening, headers) = ([0, 0, 0, 4, 0, 0, 0, 0, 0], [0, 0, 20, 1, 4, 0, 0, 0, 1, 0x82]);
    let sent = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &opening, &headers].concat();
    // Half a preface, no request, and half of one.
    for end in [19, sent.len() - headers.len(), sent.len()] {
        let mut client = server.connect().await;
        client.send(&sent[..end]).await;
        client.closed().await;
    }
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed_by_the_keepalive_timeout_and_not_before() {
    let server = Server::start(ConnectionSettings { header: SHORT / 4, keepalive: SHORT, ..settings() });
    let (mut sender, connection) = connect(&server).await;
    for _ in 0..4 {
        get(&mut sender, "/").await.unwrap().body_mut().data().await.unwrap().unwrap();
        tokio::time::sleep(SHORT / 2).await;
        assert!(!connection.is_finished());
    }
    let _ = tokio::time::timeout(LONG, connection).await.unwrap();
}

#[tokio::test]
async fn a_request_under_way_is_under_no_timeout_of_the_connection() {
    let server = Server::start(ConnectionSettings { header: SHORT, keepalive: SHORT, body_idle: SHORT, ..settings() });
    let (mut sender, _connection) = connect(&server).await;
    let waiting = get(&mut sender, "/wait");
    let (answer, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(SHORT * 3).await;
        server.app.gate.add_permits(1);
    });
    assert_eq!(answer.unwrap().status(), 200);
}

/// A listener for proxies that ask, and may be silent for so long.
fn asked() -> Server {
    let settings = ConnectionSettings { keepalive: SHORT, body_idle: SHORT, ..settings() };
    Server::with_terms(settings, ListenerSettings { askers: Some(Networks::loopback()), ..ListenerSettings::default() })
}

#[tokio::test]
async fn an_asker_that_hangs_over_a_request_is_closed() {
    let server = asked();
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (mut sender, mut connection) = h2::client::handshake(stream).await.unwrap();
    let request = http::Request::get("http://a/wait").body(()).unwrap();
    let _answer = sender.send_request(request, true).unwrap();
    tokio::select! {
        ended = &mut connection => panic!("{ended:?}"),
        () = eventually(|| server.app.started.load(Ordering::SeqCst) == 1) => {}
    }
    // Its kernel takes what is sent, and it reads nothing any more.
    eventually(|| server.app.dropped.load(Ordering::SeqCst) == 1).await;
    assert!(tokio::time::timeout(LONG, connection).await.is_ok(), "the connection is closed");
}

#[tokio::test]
async fn an_asker_that_answers_pings_may_wait_for_long() {
    let server = asked();
    let (mut sender, _connection) = connect(&server).await;
    let waiting = get(&mut sender, "/wait");
    let (answer, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(SHORT * 8).await;
        server.app.gate.add_permits(1);
    });
    assert_eq!(answer.unwrap().status(), 200);
}

#[tokio::test]
async fn a_panic_ends_one_stream_only() {
    let server = Server::start(settings());
    let (mut sender, _connection) = connect(&server).await;
    assert!(get(&mut sender, "/panic").await.is_err());
    assert_eq!(get(&mut sender, "/").await.unwrap().status(), 200);
}

#[tokio::test]
async fn frames_that_are_no_request_do_not_prolong_a_silence() {
    let halves = [&b"\0\0\x08\x06\0\0\0\0\0four"[..], b"more"];
    for served in [false, true] {
        let settings = ConnectionSettings { header: 4 * SHORT, keepalive: 4 * SHORT, ..settings() };
        let server = Server::start(settings);
        let mut client = server.connect().await;
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        if served {
            client.send(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a").await;
        }
        let mut pings = 0;
        let closing = async {
            for half in halves.iter().cycle() {
                if client.stream.write_all(half).await.is_err() {
                    return;
                }
                pings += 1;
                tokio::time::sleep(SHORT / 2).await;
            }
        };
        tokio::time::timeout(LONG, closing).await.expect("it is closed");
        assert!((8..40).contains(&pings), "{pings} halves of pings");
    }
}
