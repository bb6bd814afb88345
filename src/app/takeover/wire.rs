//! Lines and descriptors over a Unix socket.

use std::io;
use std::io::ErrorKind;
use std::io::IoSlice;
use std::io::IoSliceMut;
use std::io::Read;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::RecvAncillaryBuffer;
use rustix::net::RecvAncillaryMessage;
use rustix::net::RecvFlags;
use rustix::net::SendAncillaryBuffer;
use rustix::net::SendAncillaryMessage;
use rustix::net::SendFlags;
use rustix::net::recvmsg;
use rustix::net::sendmsg;

/// Every line of the protocol is short.
const LONGEST_LINE: usize = 256;

pub(super) fn send_line(mut stream: &UnixStream, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())
}

/// The next line, without its end. Nothing behind it is read: descriptors may follow.
pub(super) fn read_line(mut stream: &UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => return String::from_utf8(line).map_err(|_| protocol_error("not UTF-8 text")),
            _ if line.len() == LONGEST_LINE => return Err(protocol_error("a line without an end")),
            [byte] => line.push(byte),
        }
    }
}

/// Sends one descriptor, with a byte to carry it.
pub(super) fn send_descriptor(stream: &UnixStream, descriptor: impl AsFd) -> io::Result<()> {
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    loop {
        match sendmsg(stream, &[IoSlice::new(CARRIER)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            sent => return sent.map(drop).map_err(io::Error::from),
        }
    }
}

/// Receives one descriptor. No process that this one starts inherits it.
pub(super) fn receive_descriptor(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = loop {
        match recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.bytes == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptors.next().ok_or_else(|| protocol_error("a descriptor is missing"))
}

/// The other side sent something that is not in the protocol.
pub(super) fn protocol_error(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not understood: {what}"))
}

const CARRIER: &[u8] = b".";
