//! The PROXY protocol: a trusted proxy says first for whom it connects. What follows its header is left in the socket.

pub(crate) mod header;

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::select;
use tokio::time::sleep;

use self::header::Header;
use self::header::Malformed;
use self::header::Reader;
use super::connection::ordered;
use super::connections::Group;
use super::connections::Order;
use super::watchdog::HURRY;

pub(super) use self::header::Ends;

/// Why there is no header to go by.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyHeaderError {
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the header is cut short")]
    CutShort,
    #[error("the header took too long")]
    Late,
    #[error("{0}")]
    Lost(#[from] io::Error),
}

/// Reads the header off a fresh connection, for so long and less when connections are drained. `None`: the proxy speaks
/// for itself.
pub(super) async fn read_proxy_header(
    stream: &TcpStream,
    group: &Group,
    patience: Duration,
) -> Result<Option<Ends>, ProxyHeaderError> {
    let hurried = async {
        ordered(group, Order::Drain).await;
        sleep(HURRY).await;
    };
    select! {
        header = read(stream) => header,
        () = sleep(patience) => Err(ProxyHeaderError::Late),
        () = hurried => Err(ProxyHeaderError::Late),
        () = ordered(group, Order::Cut) => Err(ProxyHeaderError::Late),
    }
}

async fn read(stream: &TcpStream) -> Result<Option<Ends>, ProxyHeaderError> {
    let mut reader = Reader::default();
    loop {
        let taken = poll_fn(|cx| {
            let mut scratch = [MaybeUninit::uninit(); SCRATCH];
            let mut buf = ReadBuf::uninit(&mut scratch);
            // Looked at first: what stands behind the header is for whoever reads next.
            stream.poll_peek(cx, &mut buf).map_ok(|_| reader.take(buf.filled()))
        });
        let (length, header) = taken.await??;
        if length == 0 {
            return Err(ProxyHeaderError::CutShort);
        }
        take_out(stream, length)?;
        match header {
            Some(Header::For(ends)) => return Ok(Some(ends)),
            Some(Header::Own) => return Ok(None),
            None => {}
        }
    }
}

/// Reads what was looked at before.
fn take_out(stream: &TcpStream, length: usize) -> Result<(), ProxyHeaderError> {
    let mut scratch = [0; SCRATCH];
    if stream.try_read(&mut scratch[..length])? == length { Ok(()) } else { Err(ProxyHeaderError::CutShort) }
}

/// Most headers are shorter.
const SCRATCH: usize = 536;
