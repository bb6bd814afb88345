//! Reads the PROXY header off a fresh connection.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::select;
use tokio::time::sleep;

use super::header::ConnectionAddresses;
use super::header::InvalidProxyHeader;
use super::header::ProxyHeader;
use super::header::ProxyHeaderReader;
use crate::listen::connections::ConnectionGroup;
use crate::listen::connections::DrainStage;
use crate::listen::watchdog::DRAIN_GRACE;

/// Why there is no valid header.
#[derive(Debug, thiserror::Error)]
pub(in crate::listen) enum ProxyHeaderError {
    #[error("{0}")]
    Invalid(#[from] InvalidProxyHeader),
    #[error("the header is cut short")]
    Incomplete,
    #[error("the header took too long")]
    Timeout,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads the header within `timeout`, or sooner when connections are drained. `None`: the proxy connects for itself.
pub(in crate::listen) async fn read_proxy_header(
    stream: &TcpStream,
    group: &ConnectionGroup,
    timeout: Duration,
) -> Result<Option<ConnectionAddresses>, ProxyHeaderError> {
    let drained = async {
        group.wait_for_stage(DrainStage::Draining).await;
        sleep(DRAIN_GRACE).await;
    };
    select! {
        header = read(stream) => header,
        () = sleep(timeout) => Err(ProxyHeaderError::Timeout),
        () = drained => Err(ProxyHeaderError::Timeout),
        () = group.wait_for_stage(DrainStage::Cut) => Err(ProxyHeaderError::Timeout),
    }
}

async fn read(stream: &TcpStream) -> Result<Option<ConnectionAddresses>, ProxyHeaderError> {
    let mut reader = ProxyHeaderReader::default();
    loop {
        let taken = poll_fn(|cx| {
            let mut buffer = [MaybeUninit::uninit(); BUFFER_SIZE];
            let mut buf = ReadBuf::uninit(&mut buffer);
            // Only peeked, because the bytes behind the header belong to TLS or HTTP.
            stream.poll_peek(cx, &mut buf).map_ok(|_| reader.take(buf.filled()))
        });
        let (length, header) = taken.await??;
        if length == 0 {
            return Err(ProxyHeaderError::Incomplete);
        }
        consume(stream, length)?;
        match header {
            Some(ProxyHeader::Forwarded(ends)) => return Ok(Some(ends)),
            Some(ProxyHeader::Local) => return Ok(None),
            None => {}
        }
    }
}

/// Reads bytes that were peeked before.
fn consume(stream: &TcpStream, length: usize) -> Result<(), ProxyHeaderError> {
    let mut buffer = [0; BUFFER_SIZE];
    if stream.try_read(&mut buffer[..length])? == length { Ok(()) } else { Err(ProxyHeaderError::Incomplete) }
}

/// In bytes: most headers are shorter.
const BUFFER_SIZE: usize = 536;
