//! Reads the PROXY header off a fresh connection.

use std::io;
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::net::recv;
use tokio::io::Interest;
use tokio::select;
use tokio::time::sleep;

use super::header::ConnectionAddresses;
use super::header::InvalidProxyHeader;
use super::header::ProxyHeader;
use super::header::ProxyHeaderReader;
use crate::listen::client_stream::ClientStream;
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
    stream: &ClientStream,
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

async fn read(stream: &ClientStream) -> Result<Option<ConnectionAddresses>, ProxyHeaderError> {
    let mut reader = ProxyHeaderReader::default();
    loop {
        let mut buffer = [0; BUFFER_SIZE];
        let arrived = peek(stream, &mut buffer).await?;
        let (length, header) = reader.take(&buffer[..arrived])?;
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

/// Copies the next bytes, which stay to be read: those behind the header belong to TLS or HTTP. Returns how many there are; zero:
/// the peer has closed its side.
async fn peek(stream: &ClientStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.ready(Interest::READABLE).await?;
        let peeked = stream.try_io(Interest::READABLE, || Ok(recv(stream, &mut *buffer, RecvFlags::PEEK)?));
        match peeked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            peeked => return peeked.map(|(length, _)| length),
        }
    }
}

/// Reads bytes that were peeked before.
fn consume(stream: &ClientStream, length: usize) -> Result<(), ProxyHeaderError> {
    let mut buffer = [0; BUFFER_SIZE];
    if stream.try_read(&mut buffer[..length])? == length { Ok(()) } else { Err(ProxyHeaderError::Incomplete) }
}

/// In bytes: most headers are shorter.
const BUFFER_SIZE: usize = 536;
