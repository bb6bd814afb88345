//! Frames: a length in four bytes, and a message.

use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::mem;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// More than the longest log of one key and the keys sent with it.
const LONGEST: usize = 64 << 20;

const HEAD: usize = 4;

/// Appends a message to the bytes to be sent.
pub(super) fn push(unsent: &mut Vec<u8>, message: &impl Serialize) {
    let begin = unsent.len();
    let mut buffer = mem::take(unsent);
    buffer.extend_from_slice(&[0; HEAD]);
    buffer = postcard::to_extend(message, buffer).expect("messages can be written");
    let length = u32::try_from(buffer.len() - begin - HEAD).expect("frames are short");
    buffer[begin..begin + HEAD].copy_from_slice(&length.to_le_bytes());
    *unsent = buffer;
}

/// The message of the frame that begins at `at`, if all of it was received; moves `at` behind it.
pub(super) fn next<T: DeserializeOwned>(received: &[u8], at: &mut usize) -> io::Result<Option<T>> {
    let rest = &received[*at..];
    let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
    let length = length(*head)?;
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    *at += HEAD + length;
    read(frame).map(Some)
}

/// Reads one frame, and no byte behind it.
pub(super) fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let mut frame = vec![0; length(head)?];
    from.read_exact(&mut frame)?;
    read(&frame)
}

fn length(head: [u8; HEAD]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length > LONGEST {
        return Err(io::Error::new(ErrorKind::InvalidData, "a frame is longer than any message"));
    }
    Ok(length)
}

fn read<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    postcard::from_bytes(frame).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}
