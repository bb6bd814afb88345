//! A WebSocket of the application works through the gateway.

use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::Message;

use crate::django::Django;

#[test]
fn a_websocket_carries_messages_both_ways() {
    let django = Django::start();
    let gateway = django.guarded();
    let stream = gateway.connect().into_stream();
    let (mut socket, _) =
        tungstenite::client(format!("ws://{}/live", gateway.address()), stream).expect("the application accepts");
    for message in [Message::text("hello"), Message::binary(vec![7; 200_000]), Message::text("bye")] {
        socket.send(message.clone()).expect("an open socket");
        assert_eq!(socket.read().expect("an echo"), message);
    }
    socket.close(None).expect("an open socket");
    while socket.read().is_ok() {}
}
