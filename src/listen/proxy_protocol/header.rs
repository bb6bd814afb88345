//! The header of the PROXY protocol, version 1 or 2, however its bytes are cut into parts.

use std::net::SocketAddr;

use crc::CRC_32_ISCSI;
use crc::Crc;
use ppp::v1;
use ppp::v2;

/// The two ends of the connection that a proxy speaks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::listen) struct Ends {
    pub source: SocketAddr,
    pub destination: SocketAddr,
}

/// What a header says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Header {
    /// The proxy speaks for this connection.
    For(Ends),
    /// The proxy speaks for itself, or does not know for whom.
    Own,
}

/// Why something is no header. Nothing of it is believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(in crate::listen) enum Malformed {
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
    #[error("what the header says beside its addresses is longer than the header")]
    Values,
    #[error("the checksum of the header is not its own")]
    Checksum,
}

/// Puts a header together.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
}

impl Reader {
    /// Takes from what arrived as much as is of the header, and not a byte behind it: at least one, if there is any and
    /// nothing is wrong. Returns how many those are, and the header once it is whole.
    pub(super) fn take(&mut self, arrived: &[u8]) -> Result<(usize, Option<Header>), Malformed> {
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

    /// Version 1, as far as it is here.
    fn line(&self) -> Result<Option<Header>, Malformed> {
        let line = &self.bytes[..];
        if !begins_alike(line, KEYWORD) {
            return Err(Malformed::Missing);
        }
        match line {
            [.., b'\r', b'\n'] => read_line(line).map(Some),
            [.., b'\n'] | [.., b'\r', _] => Err(Malformed::LineEnd),
            _ if line.len() == LINE => Err(Malformed::TooLong),
            _ => Ok(None),
        }
    }

    /// Version 2, as far as it is here. What is wrong is told before what follows it is waited for.
    fn block(&self) -> Result<Option<Header>, Malformed> {
        let block = &self.bytes[..];
        if !begins_alike(block, SIGNATURE) {
            return Err(Malformed::Missing);
        }
        let Some((command, rest)) = block.get(SIGNATURE.len()..).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        if command & VERSION != VERSION_2 {
            return Err(Malformed::Version);
        }
        if command & !VERSION > PROXY {
            return Err(Malformed::Command);
        }
        let is_local = command & !VERSION == LOCAL;
        let Some((family, rest)) = rest.split_first() else { return Ok(None) };
        if !is_local && !FAMILIES.contains(family) {
            return Err(Malformed::Family);
        }
        let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length > BLOCK - FIXED {
            return Err(Malformed::TooLong);
        }
        if rest.len() < length {
            return Ok(None);
        }
        // Of what is local, nothing is to be read.
        if is_local { Ok(Some(Header::Own)) } else { read_block(block).map(Some) }
    }
}

fn begins_alike(bytes: &[u8], beginning: &[u8]) -> bool {
    let compared = bytes.len().min(beginning.len());
    bytes[..compared] == beginning[..compared]
}

fn read_line(line: &[u8]) -> Result<Header, Malformed> {
    if line == b"PROXY UNKNOWN\r\n" || line.starts_with(b"PROXY UNKNOWN ") {
        // What follows is to be ignored.
        return Ok(Header::Own);
    }
    // The ports are read as Rust reads numbers, and no port has a sign.
    if line.contains(&b'+') {
        return Err(Malformed::Addresses);
    }
    match v1::Header::try_from(line).map_err(|_| Malformed::Addresses)?.addresses {
        v1::Addresses::Tcp4(ends) => Ok(Header::For(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v1::Addresses::Tcp6(ends) => Ok(Header::For(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v1::Addresses::Unknown => Ok(Header::Own),
    }
}

fn read_block(block: &[u8]) -> Result<Header, Malformed> {
    let header = v2::Header::try_from(block).map_err(|_| Malformed::Addresses)?;
    check_values(&header)?;
    match header.addresses {
        v2::Addresses::IPv4(ends) => Ok(Header::For(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v2::Addresses::IPv6(ends) => Ok(Header::For(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        })),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => Ok(Header::Own),
    }
}

/// Checks what stands behind the addresses. Whatever it says is of no interest, but that all of it is there, and that the
/// checksum, if there is one, is that of the header.
fn check_values(header: &v2::Header<'_>) -> Result<(), Malformed> {
    let block = header.as_bytes();
    let mut end = block.len() - header.tlv_bytes().len();
    let mut has_checksum = false;
    for value in header.tlvs() {
        let value = value.map_err(|_| Malformed::Values)?;
        end += TLV_HEAD + value.value.len();
        if value.kind == u8::from(v2::Type::CRC32C) {
            let stated = value.value[..].try_into().map_err(|_| Malformed::Checksum)?;
            if has_checksum || checksum(block, end) != u32::from_be_bytes(stated) {
                return Err(Malformed::Checksum);
            }
            has_checksum = true;
        }
    }
    Ok(())
}

/// Of a block, as if the four bytes before `end` were none: there it stands itself.
fn checksum(block: &[u8], end: usize) -> u32 {
    let mut digest = CRC32C.digest();
    digest.update(&block[..end - 4]);
    digest.update(&[0; 4]);
    digest.update(&block[end..]);
    digest.finalize()
}

const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// What stands before a value: its kind and its length.
const TLV_HEAD: usize = 3;

/// How version 1 begins, and the most that it may be, with its CRLF.
const KEYWORD: &[u8] = b"PROXY ";
const LINE: usize = 107;

/// How version 2 begins, and what stands before its addresses: that, version and command, family, length.
const SIGNATURE: &[u8] = v2::PROTOCOL_PREFIX;
const FIXED: usize = 16;

/// The most that version 2 may be: addresses, and what else proxies are known to tell, several times over.
const BLOCK: usize = 4096;

/// The half of a byte that has the version; the other one has the command.
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
