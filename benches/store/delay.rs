//! A way to a server that takes as long as a network: what is sent arrives so much later, in each direction.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

/// Passes on what comes to `listener` to the server, and its answers back, each `each_way` later.
pub(crate) fn relay(listener: TcpListener, server: SocketAddr, each_way: Duration) {
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            // A server that has ended refuses, and so does the relay.
            let _ = connect(client, server, each_way);
        }
    });
}

fn connect(client: TcpStream, server: SocketAddr, each_way: Duration) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    // Otherwise the kernel would hold back a small packet behind another one.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    pass_on(client.try_clone()?, server.try_clone()?, each_way);
    pass_on(server, client, each_way);
    Ok(())
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, each_way: Duration) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if sender.send((Instant::now() + each_way, bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
