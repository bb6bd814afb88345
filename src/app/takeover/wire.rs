//! Lines and descriptors over a Unix socket.

use std::io;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::store::handover::message::TransferVersion;

/// Every line of the protocol is short.
const LONGEST_LINE: usize = 256;

const CARRIER: &[u8] = b".";

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

// What the two processes of a takeover send each other over the control socket, line by line.
//
// | new process | running gateway |
// | --- | --- |
// | `take over 5` | `sockets ADDRESS COUNT` and so many descriptors, for each address; `file DEVICE INODE PATH` for each file of
// | | a Unix socket that goes with its listener; `clock MICROSECONDS`; then `end` |
// | `state` | `state LENGTH` and so many bytes: bans, known clients and sessions; it writes no snapshot to disk from here on |
// | `counts` | all that is counted but the keys, as [`transfer`](crate::store::handover::transfer) sends it; it is frozen now |
// | `serving` | after `counts`, `yours` or `mine`: which process goes on with them; else `draining` |
//
// `counts` comes last, when nothing is left that could fail or take long. Before `yours` the new process decides
// nothing. After it the old one decides nothing: for the requests it serves it asks the new one, over the same
// socket, on which the keys follow (see [`handover`](crate::store::handover)). The new process accepts connections when
// it has all keys. A connection that ends without a line means that the process at the other end is gone.
//
// The new process greets a gateway that does not know version 5 with the next older one: version 4 has no files, in version 3 the
// keys come before `serving`, version 2 has no sessions, and version 1 neither clock nor `counts`.

/// The first lines, the newest version first, and how counts are transferred then. The digit is the version of
/// everything that follows, the encoding of counts included: a change of how a key's memory is written changes it too.
pub(super) const GREETINGS: [Greeting; 5] = [
    Greeting { line: "take over 5", counts: Some(TransferVersion::V4), knows_files: true },
    Greeting { line: "take over 4", counts: Some(TransferVersion::V4), knows_files: false },
    Greeting { line: "take over 3", counts: Some(TransferVersion::V3), knows_files: false },
    Greeting { line: "take over 2", counts: Some(TransferVersion::V2), knows_files: false },
    Greeting { line: "take over 1", counts: None, knows_files: false },
];

/// The first line of a new process, and what it understands.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) line: &'static str,
    /// How counts are transferred.
    pub(super) counts: Option<TransferVersion>,
    /// It removes the files of Unix sockets.
    pub(super) knows_files: bool,
}

/// How long counts stay frozen for a new process that does not go on.
pub(super) const FREEZE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long either side waits for the other: a gateway may be reading a list of a million lines, or waiting for Redis.
pub(super) const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(60);
