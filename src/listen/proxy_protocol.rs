//! The PROXY protocol: a trusted proxy first sends the addresses of the connection that it forwards. The bytes behind
//! its header stay in the socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use crc::{CRC_32_ISCSI, Crc};
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::select;
use tokio::time::sleep;

use crate::listen::client_stream::ClientStream;
use crate::listen::connections::{ConnectionGroup, DrainStage};
use crate::listen::watchdog::DRAIN_GRACE;

/// In bytes: most headers are shorter.
const BUFFER_SIZE: usize = 536;

static CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// The kind of a value that is a checksum.
const CRC32C_VALUE: u8 = 0x03;

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

/// Copies the next bytes without consuming them, because the bytes after the header belong to TLS or HTTP. Returns how
/// many there are; zero: the peer has closed its side.
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

// Parses the header of the PROXY protocol, version 1 or 2, incrementally.

/// How version 1 begins, and its greatest length with the CRLF.
const KEYWORD: &[u8] = b"PROXY ";

const LINE: usize = 107;

/// How version 2 begins, and the length of the part before the addresses: signature, version and command, family, length.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

const FIXED: usize = 16;

/// The greatest length of version 2: the addresses, and several times the values that proxies are known to send.
const BLOCK: usize = 4096;

/// The bits of the version. The other half of the byte is the command.
const VERSION: u8 = 0xf0;

const VERSION_2: u8 = 0x20;

const LOCAL: u8 = 0;

const PROXY: u8 = 1;

/// Unspecified, and streams over IPv4, IPv6 and in the file system.
const FAMILIES: &[u8] = &[0x00, STREAM_IPV4, STREAM_IPV6, STREAM_UNIX];

const STREAM_IPV4: u8 = 0x11;

const STREAM_IPV6: u8 = 0x21;

const STREAM_UNIX: u8 = 0x31;

/// The length of two paths in the file system.
const UNIX_ENDS: usize = 2 * 108;

/// The addresses of a connection: the client's, and the one that it connected to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::listen) struct ConnectionAddresses {
    pub source: SocketAddr,
    pub destination: SocketAddr,
}

/// A parsed header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProxyHeader {
    /// The proxy forwards this connection.
    Forwarded(ConnectionAddresses),
    /// The proxy connects for itself, or does not know the client.
    Local,
}

/// Why a header is invalid. No part of it is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(in crate::listen) enum InvalidProxyHeader {
    #[error("the connection begins with neither `PROXY ` nor the signature of version 2")]
    Missing,
    #[error("the header is too long")]
    TooLong,
    #[error("the line of the header does not end in CRLF")]
    LineEnd,
    #[error("the version of the header is not 2")]
    Version,
    #[error("the command of the header is neither LOCAL nor PROXY")]
    Command,
    #[error("the addresses of the header are not those of a stream")]
    Family,
    #[error("the addresses of the header are malformed")]
    Addresses,
    #[error("a value beside the addresses is longer than the header")]
    Values,
    #[error("the checksum of the header is wrong")]
    Checksum,
}

/// Collects the bytes of a header.
#[derive(Debug, Default)]
pub(super) struct ProxyHeaderReader {
    bytes: Vec<u8>,
}

impl ProxyHeaderReader {
    /// Takes the bytes that belong to the header, and none behind it. Returns their number, at least one if any arrived, and
    /// the header once it is complete.
    pub(super) fn take(&mut self, arrived: &[u8]) -> Result<(usize, Option<ProxyHeader>), InvalidProxyHeader> {
        for (position, byte) in arrived.iter().enumerate() {
            self.bytes.push(*byte);
            let header = match self.bytes[0] {
                b'P' => self.line()?,
                _ => self.block()?,
            };
            if header.is_some() {
                return Ok((position + 1, header));
            }
        }
        Ok((arrived.len(), None))
    }

    /// Parses version 1. `None`: the header is not complete.
    fn line(&self) -> Result<Option<ProxyHeader>, InvalidProxyHeader> {
        let line = &self.bytes[..];
        if !begins_alike(line, KEYWORD) {
            return Err(InvalidProxyHeader::Missing);
        }
        match line {
            [.., b'\r', b'\n'] => read_line(line).map(Some),
            [.., b'\n'] | [.., b'\r', _] => Err(InvalidProxyHeader::LineEnd),
            _ if line.len() == LINE => Err(InvalidProxyHeader::TooLong),
            _ => Ok(None),
        }
    }

    /// Parses version 2. `None`: the header is not complete. An error is reported at the byte that causes it.
    fn block(&self) -> Result<Option<ProxyHeader>, InvalidProxyHeader> {
        let block = &self.bytes[..];
        if !begins_alike(block, SIGNATURE) {
            return Err(InvalidProxyHeader::Missing);
        }
        let Some((command, rest)) = block.get(SIGNATURE.len()..).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        if command & VERSION != VERSION_2 {
            return Err(InvalidProxyHeader::Version);
        }
        if command & !VERSION > PROXY {
            return Err(InvalidProxyHeader::Command);
        }
        let is_local = command & !VERSION == LOCAL;
        let Some((family, rest)) = rest.split_first() else { return Ok(None) };
        if !is_local && !FAMILIES.contains(family) {
            return Err(InvalidProxyHeader::Family);
        }
        let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length > BLOCK - FIXED {
            return Err(InvalidProxyHeader::TooLong);
        }
        if rest.len() < length {
            return Ok(None);
        }
        // A local connection has no addresses to read.
        if is_local { Ok(Some(ProxyHeader::Local)) } else { read_block(block, *family, rest).map(Some) }
    }
}

fn begins_alike(bytes: &[u8], beginning: &[u8]) -> bool {
    let compared = bytes.len().min(beginning.len());
    bytes[..compared] == beginning[..compared]
}

fn read_line(line: &[u8]) -> Result<ProxyHeader, InvalidProxyHeader> {
    if line == b"PROXY UNKNOWN\r\n" || line.starts_with(b"PROXY UNKNOWN ") {
        // The rest of the header must be ignored.
        return Ok(ProxyHeader::Local);
    }
    let line = line.strip_prefix(KEYWORD).and_then(|line| line.strip_suffix(b"\r\n"));
    let line = line.and_then(|line| str::from_utf8(line).ok()).ok_or(InvalidProxyHeader::Addresses)?;
    let words: Vec<&str> = line.split(' ').collect();
    let addresses = match words[..] {
        ["TCP4", ref ends @ ..] => read_ends::<Ipv4Addr>(ends),
        ["TCP6", ref ends @ ..] => read_ends::<Ipv6Addr>(ends),
        _ => None,
    };
    addresses.map(ProxyHeader::Forwarded).ok_or(InvalidProxyHeader::Addresses)
}

fn read_ends<Address: FromStr + Into<IpAddr>>(words: &[&str]) -> Option<ConnectionAddresses> {
    let &[source, destination, source_port, destination_port] = words else { return None };
    let read = |address: &str, port| Some(SocketAddr::new(address.parse::<Address>().ok()?.into(), read_port(port)?));
    Some(ConnectionAddresses { source: read(source, source_port)?, destination: read(destination, destination_port)? })
}

/// A number without a sign and without zeros before it.
fn read_port(text: &str) -> Option<u16> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_plain)
}

/// Reads a whole block of this family, whose addresses and values these are.
fn read_block(block: &[u8], family: u8, content: &[u8]) -> Result<ProxyHeader, InvalidProxyHeader> {
    let (header, values) = match family {
        STREAM_IPV4 => split_ends::<4>(content),
        STREAM_IPV6 => split_ends::<16>(content),
        STREAM_UNIX => content.get(UNIX_ENDS..).map(|values| (ProxyHeader::Local, values)),
        // Behind addresses of an unknown family, the values cannot be found.
        _ => Some((ProxyHeader::Local, &[][..])),
    }
    .ok_or(InvalidProxyHeader::Addresses)?;
    check_values(block, values)?;
    Ok(header)
}

/// The addresses, of `LENGTH` bytes each, with their ports; and the rest.
fn split_ends<const LENGTH: usize>(content: &[u8]) -> Option<(ProxyHeader, &[u8])>
where
    IpAddr: From<[u8; LENGTH]>,
{
    let (source, rest) = content.split_first_chunk::<LENGTH>()?;
    let (destination, rest) = rest.split_first_chunk::<LENGTH>()?;
    let (source_port, rest) = rest.split_first_chunk()?;
    let (destination_port, rest) = rest.split_first_chunk()?;
    let addresses = ConnectionAddresses {
        source: (IpAddr::from(*source), u16::from_be_bytes(*source_port)).into(),
        destination: (IpAddr::from(*destination), u16::from_be_bytes(*destination_port)).into(),
    };
    Some((ProxyHeader::Forwarded(addresses), rest))
}

/// Checks the values at the end of a block: each must be complete, and a checksum must be right. The other values are
/// ignored.
fn check_values(block: &[u8], mut values: &[u8]) -> Result<(), InvalidProxyHeader> {
    let mut has_checksum = false;
    while let Some((kind, rest)) = values.split_first() {
        let (length, rest) = rest.split_first_chunk().ok_or(InvalidProxyHeader::Values)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (value, rest) = rest.split_at_checked(length).ok_or(InvalidProxyHeader::Values)?;
        values = rest;
        if *kind == CRC32C_VALUE {
            let stated = value.try_into().map_err(|_| InvalidProxyHeader::Checksum)?;
            if has_checksum || checksum(block, block.len() - rest.len()) != u32::from_be_bytes(stated) {
                return Err(InvalidProxyHeader::Checksum);
            }
            has_checksum = true;
        }
    }
    Ok(())
}

/// The checksum of a block. The four bytes before `end` hold the checksum itself, and count as zero.
fn checksum(block: &[u8], end: usize) -> u32 {
    let mut digest = CRC32C.digest();
    digest.update(&block[..end - 4]);
    digest.update(&[0; 4]);
    digest.update(&block[end..]);
    digest.finalize()
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use super::{InvalidProxyHeader, ProxyHeader, ProxyHeaderReader};
    use crate::words::corpus;

    /// A header is read the same however it is split into reads, and takes no byte after its end.
    pub fn check(bytes: &[u8]) {
        let read = |bytes: &[u8]| {
            corpus::same_for_every_split(bytes, |reads| {
                let (mut reader, mut taken) = (ProxyHeaderReader::default(), 0);
                for arrived in reads {
                    let (length, header) = reader.take(arrived)?;
                    taken += length;
                    if header.is_some() {
                        return Ok((taken, header));
                    }
                }
                Ok::<(usize, Option<ProxyHeader>), InvalidProxyHeader>((taken, None))
            })
        };
        let outcome = read(bytes);
        let Ok((length, header)) = outcome else { return };
        assert!(length <= bytes.len() && (header.is_some() || length == bytes.len()));
        if header.is_some() {
            assert_eq!(read(&bytes[..length]), outcome, "it depends on what follows it");
        }
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("proxy_header", check);
    }
}

#[cfg(test)]
mod tests;
