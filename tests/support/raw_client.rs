//! A client that sends exactly the given bytes.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use super::clock::PATIENCE;
use super::message::{Response, Wire};

/// Whether the process that listens on this address has read all that its clients have sent so far.
#[track_caller]
pub fn all_is_read(address: SocketAddr) -> bool {
    const ESTABLISHED: &str = "01";
    let sockets = fs::read_to_string("/proc/self/net/tcp").expect("the sockets of this machine");
    let port = format!(":{:04X}", address.port());
    // Below a head: number, its own address, that of the peer, state, and how much is to be sent and to be read.
    sockets.lines().skip(1).all(|socket| {
        let fields: Vec<&str> = socket.split_whitespace().collect();
        !fields[1].ends_with(&port) || fields[3] != ESTABLISHED || fields[4].ends_with(":00000000")
    })
}

#[derive(Debug)]
pub struct RawClient {
    wire: Wire<TcpStream>,
}

impl RawClient {
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("the gateway accepts connections"))
    }

    /// Connects from another loopback address, which is another client.
    pub fn connect_from(source: IpAddr, address: SocketAddr) -> Self {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::new(source, 0).into()).expect("a loopback address");
        socket.connect(&address.into()).expect("the gateway accepts connections");
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a connected socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout above zero");
        Self { wire: Wire::new(stream) }
    }

    /// The kernel takes little more than was read.
    pub fn have_little_room(&mut self) -> &mut Self {
        socket2::SockRef::from(&self.wire.stream).set_recv_buffer_size(4096).expect("a socket");
        self
    }

    /// Sends bytes. If the connection is closed, reading fails later.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.wire.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends as much as the gateway takes without a long wait.
    pub fn send_until_full(&mut self, bytes: &[u8]) {
        self.wire.stream.set_write_timeout(Some(Duration::from_millis(20))).expect("a timeout above zero");
        self.send(bytes);
        self.wire.stream.set_write_timeout(Some(PATIENCE)).expect("a timeout above zero");
    }

    /// The next final response.
    #[track_caller]
    pub fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    /// The next final response, to a request of that method: those to HEAD have no body.
    #[track_caller]
    pub fn response_to(&mut self, method: &str) -> Response {
        self.try_response(method).expect("a response before the connection ends")
    }

    pub fn try_response(&mut self, method: &str) -> Option<Response> {
        self.wire.response(method).ok()
    }

    /// The next head, also of an informational response, without its body.
    #[track_caller]
    pub fn head(&mut self) -> String {
        self.wire.head().expect("a head before the connection ends")
    }

    /// Reads some bytes. Empty at the end of the connection.
    pub fn some(&mut self) -> Vec<u8> {
        if self.wire.unread.is_empty() {
            let _ = self.wire.fill();
        }
        std::mem::take(&mut self.wire.unread)
    }

    /// Everything until the connection ends.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.wire.fill().is_ok() {}
        std::mem::take(&mut self.wire.unread)
    }

    /// Whether the connection ends within that time with nothing more to read.
    pub fn ends_within(&mut self, patience: Duration) -> bool {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        use std::io::Read;
        self.wire.stream.set_read_timeout(Some(patience)).expect("a timeout above zero");
        let end = match self.wire.stream.read(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => !matches!(error.kind(), WouldBlock | TimedOut),
        };
        self.wire.stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
        end
    }

    /// Closes the sending side.
    pub fn finish(&mut self) {
        let _ = self.wire.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Resets the connection.
    pub fn abort(self) {
        let linger = socket2::SockRef::from(&self.wire.stream).set_linger(Some(Duration::ZERO));
        linger.expect("a connected socket");
    }

    /// The socket, for another protocol.
    pub fn into_stream(self) -> TcpStream {
        self.wire.stream
    }
}
