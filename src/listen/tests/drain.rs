use super::*;
use crate::rules::client::Networks;

#[tokio::test]
async fn a_connection_still_in_the_accept_queue_is_answered_once() {
    let server = Server::start(settings());
    tokio::task::yield_now().await;
    // No task runs between these lines: the connection is in the queue when its listener stops.
    let mut client = std::net::TcpStream::connect(server.address).unwrap();
    std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    server.stop.close();
    eventually(|| server.connections.count() == 1).await;

    server.connections.drain().await;

    let mut answer = String::new();
    std::io::Read::read_to_string(&mut client, &mut answer).unwrap();
    assert!(answer.contains("hello"), "{answer}");
}

#[tokio::test]
async fn connections_in_the_accept_queue_are_left_to_the_process_that_takes_the_socket_over() {
    let server = Server::start(settings());
    let first = bind((Ipv4Addr::LOCALHOST, 0).into(), Stack::Dual, 1).unwrap().remove(0);
    let (address, second) = (first.local_addr().unwrap(), first.try_clone().unwrap());
    let local: ListenAddress = first.local_addr().unwrap().into();
    let start = |socket, stopper: &AcceptStopper| {
        let settings = Arc::clone(&server.settings);
        let state = Arc::new(ListenerState::new(ListenerRuntime::default(), server.connections.clone()));
        tokio::spawn(serve(
            ListeningSocket::Tcp(socket),
            local.clone(),
            state,
            settings,
            server.app.clone(),
            stopper.stop(),
        ));
    };
    let stopper = AcceptStopper::default();
    start(first, &stopper);
    Client::connect(address).await.get("/").await;
    stopper.hand_over();
    stopper.ended().await;
    let mut client = Client::connect(address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;

    start(second, &AcceptStopper::default());

    assert!(client.answer().await.contains("hello"));
}

#[tokio::test]
async fn half_a_head_is_read_to_its_end_while_draining() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.get("/").await;
    client.send("GET / HTTP/1.1\r\nHos").await;
    tokio::time::sleep(SHORT).await;

    let connections = server.connections.clone();
    let drained = tokio::spawn(async move { connections.drain().await });
    tokio::time::sleep(SHORT).await;
    client.send("t: a\r\n\r\n").await;

    assert!(client.rest().await.contains("hello"));
    drained.await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_heed_a_goaway_gets_no_answers_for_ever() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    let request = |stream: u8, path: &[u8]| {
        let head = [&b"\x82\x86\x41\x01a"[..], path].concat();
        [&[0, 0, u8::try_from(head.len()).unwrap(), 1, 5, 0, 0, 0, stream], &head[..]].concat()
    };
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    client.send(&request(1, b"\x04\x05/wait")).await;
    eventually(|| server.app.started.load(Ordering::SeqCst) == 1).await;
    let connections = server.connections.clone();
    let draining = tokio::spawn(async move { connections.drain().await });

    let mut received = Vec::new();
    let refused = async {
        for stream in (3..=u8::MAX).step_by(2) {
            client.send(&request(stream, b"\x84")).await;
            let _ = tokio::time::timeout(SHORT, client.stream.read_buf(&mut received)).await;
            let reset = [0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, 7];
            if received.windows(reset.len()).any(|part| part == reset) {
                return;
            }
        }
    };
    tokio::time::timeout(LONG, refused).await.expect("it is refused");
    // The request that was under way before is answered all the same.
    server.app.gate.add_permits(1);
    let answered = async {
        while !received.windows(6).any(|part| part == b"waited") {
            assert_ne!(client.stream.read_buf(&mut received).await.unwrap(), 0, "closed");
        }
    };
    tokio::time::timeout(LONG, answered).await.expect("it is answered");
    draining.abort();
}

#[tokio::test]
async fn one_listener_is_drained_without_the_others() {
    let server = Server::start(settings());
    let listener = server.connections.part();
    let socket = bind((Ipv4Addr::LOCALHOST, 0).into(), Stack::Dual, 1).unwrap().remove(0);
    let address = socket.local_addr().unwrap();
    let stopper = AcceptStopper::default();
    let state = Arc::new(ListenerState::new(ListenerRuntime::default(), listener.clone()));
    let socket = ListeningSocket::Tcp(socket);
    tokio::spawn(serve(
        socket,
        address.into(),
        state,
        Arc::clone(&server.settings),
        server.app.clone(),
        stopper.stop(),
    ));
    let mut there = Client::connect(address).await;
    there.get("/").await;
    let mut here = server.connect().await;
    here.get("/").await;
    assert_eq!((server.connections.count(), listener.count()), (2, 1));

    listener.drain().await;

    there.closed().await;
    assert!(here.get("/").await.starts_with("HTTP/1.1 200"));
    server.connections.drain().await;
    here.closed().await;
}

#[tokio::test]
async fn connections_from_before_a_listener_served_otherwise_are_drained_without_the_later_ones() {
    let server = Server::start(settings());
    let mut early = server.connect().await;
    early.get("/").await;
    let terms = ListenerSettings { askers: Some(Networks::loopback()), ..ListenerSettings::default() };
    let change = server.door.change(ListenerRuntime::prepare(terms.clone(), None).unwrap());
    let (_, before) = change.serves.expect("it answers proxies now");
    let mut late = server.connect().await;
    late.get("/").await;
    let change = server.door.change(ListenerRuntime::prepare(terms, None).unwrap());
    assert!(change.serves.is_none());

    before.drain().await;

    early.closed().await;
    assert!(late.get("/").await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.connections.count(), 1);
}
