//! Opens a connection and waits until the server has answered in HTTP/2.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use h2::client::Builder;
use tokio::select;

use super::connection::ConnectionState;
use super::connection::Http2Connection;
use super::driver::Driver;
use super::driver::MAX_STREAMS;
use super::driver::max_streams;
use super::read_monitor::ReadMonitor;
use crate::timer::PeerTimedOut;
use crate::timer::peer_timeout;
use crate::upstream::connect::connect;
use crate::upstream::error::FailureCause;
use crate::upstream::protocol::Protocol;
use crate::upstream::server::Server;
use crate::upstream::settings::HeadBounds;
use crate::upstream::settings::Timeouts;

/// A new connection, and the driver that must run for requests to be sent over it.
pub(super) async fn open(
    server: &Arc<Server>,
    timeouts: &Timeouts,
    heads: HeadBounds,
) -> Result<(Http2Connection, Driver), FailureCause> {
    let stream = connect(server, timeouts, Protocol::Http2).await?;
    let (stream, first_byte, last_read) = ReadMonitor::new(stream);
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(MAX_STREAMS as usize)
        .initial_window_size(STREAM_WINDOW)
        // A client that does not read its answer must not hold up the others.
        .initial_connection_window_size(STREAM_WINDOW * MAX_STREAMS)
        .max_frame_size(MAX_FRAME)
        .max_header_list_size(heads.http2_list_size())
        .max_send_buffer_size(MAX_SEND_BUFFER);
    let (sender, mut connection) =
        builder.handshake(stream).await.map_err(|error| FailureCause::Closed(error.into()))?;
    let server_speaks = async {
        select! {
            biased;
            ended = &mut connection => Err(ended.err().map_or_else(not_http2, |error| FailureCause::Closed(error.into()))),
            _ = first_byte => Ok(()),
        }
    };
    peer_timeout(timeouts.connect, pin!(server_speaks))
        .await
        .map_err(|PeerTimedOut| FailureCause::ConnectTimeout)??;
    // What has arrived is read now: a connection that ends at it was not HTTP/2.
    let ended = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_ready())).await;
    let most = max_streams(&connection);
    if ended || most == 0 {
        return Err(not_http2());
    }
    server.note_connected();
    let state = ConnectionState::new(most);
    let driver = Driver::new(connection, last_read, Arc::clone(&state), Arc::clone(server), timeouts.idle);
    Ok((Http2Connection { sender, state }, driver))
}

fn not_http2() -> FailureCause {
    FailureCause::Connect(io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP/2"))
}

/// What a server may send of one answer before it is read.
const STREAM_WINDOW: u32 = 64 * 1024;

/// What a server may send in one frame.
const MAX_FRAME: u32 = 16 * 1024;

/// What is taken of one request's body before the server reads it.
const MAX_SEND_BUFFER: usize = 64 * 1024;
