//! Parses the header of the PROXY protocol, version 1 or 2, incrementally.

use std::net::SocketAddr;

use crc::CRC_32_ISCSI;
use crc::Crc;
use ppp::v1;
use ppp::v2;

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
        // Of what is local, nothing is to be read.
        if is_local { Ok(Some(ProxyHeader::Local)) } else { read_block(block).map(Some) }
    }
}

fn begins_alike(bytes: &[u8], beginning: &[u8]) -> bool {
    let compared = bytes.len().min(beginning.len());
    bytes[..compared] == beginning[..compared]
}

fn read_line(line: &[u8]) -> Result<ProxyHeader, InvalidProxyHeader> {
    if line == b"PROXY UNKNOWN\r\n" || line.starts_with(b"PROXY UNKNOWN ") {
        // What follows is to be ignored.
        return Ok(ProxyHeader::Local);
    }
    // The ports are read as Rust reads numbers, and no port has a sign.
    if line.contains(&b'+') {
        return Err(InvalidProxyHeader::Addresses);
    }
    match v1::Header::try_from(line).map_err(|_| InvalidProxyHeader::Addresses)?.addresses {
        v1::Addresses::Tcp4(ends) => Ok(ProxyHeader::Forwarded(ConnectionAddresses {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v1::Addresses::Tcp6(ends) => Ok(ProxyHeader::Forwarded(ConnectionAddresses {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v1::Addresses::Unknown => Ok(ProxyHeader::Local),
    }
}

fn read_block(block: &[u8]) -> Result<ProxyHeader, InvalidProxyHeader> {
    let header = v2::Header::try_from(block).map_err(|_| InvalidProxyHeader::Addresses)?;
    check_values(&header)?;
    match header.addresses {
        v2::Addresses::IPv4(ends) => Ok(ProxyHeader::Forwarded(ConnectionAddresses {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v2::Addresses::IPv6(ends) => Ok(ProxyHeader::Forwarded(ConnectionAddresses {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => Ok(ProxyHeader::Local),
    }
}

/// Checks the values behind the addresses: each must be complete, and a checksum must be right. The other values are
/// ignored.
fn check_values(header: &v2::Header<'_>) -> Result<(), InvalidProxyHeader> {
    let block = header.as_bytes();
    let mut end = block.len() - header.tlv_bytes().len();
    let mut has_checksum = false;
    for value in header.tlvs() {
        let value = value.map_err(|_| InvalidProxyHeader::Values)?;
        end += TLV_HEAD + value.value.len();
        if value.kind == u8::from(v2::Type::CRC32C) {
            let stated = value.value[..].try_into().map_err(|_| InvalidProxyHeader::Checksum)?;
            if has_checksum || checksum(block, end) != u32::from_be_bytes(stated) {
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

const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// In bytes: the kind and the length before a value.
const TLV_HEAD: usize = 3;

/// How version 1 begins, and its greatest length with the CRLF.
const KEYWORD: &[u8] = b"PROXY ";
const LINE: usize = 107;

/// How version 2 begins, and the length of the part before the addresses: signature, version and command, family, length.
const SIGNATURE: &[u8] = v2::PROTOCOL_PREFIX;
const FIXED: usize = 16;

/// The greatest length of version 2: the addresses, and several times the values that proxies are known to send.
const BLOCK: usize = 4096;

/// The bits of the version. The other half of the byte is the command.
const VERSION: u8 = 0xf0;
const VERSION_2: u8 = 0x20;
const LOCAL: u8 = 0;
const PROXY: u8 = 1;

/// Unspecified, and streams over IPv4, IPv6 and in the file system.
const FAMILIES: &[u8] = &[0x00, 0x11, 0x21, 0x31];

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
