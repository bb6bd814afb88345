//! Which streams of a client may still bring frames (RFC 9113, section 5.1).

use std::ops::Range;

use h2::Reason;

/// The streams of one connection, as far as its client has opened and ended them. What we have reset is open here until the client
/// ends it: what was under way by then is no fault.
#[derive(Debug, Default)]
pub(super) struct ClientStreams {
    /// The stream that was opened last.
    newest: u32,
    /// The streams that the client has not ended, in ascending order.
    open: Vec<u32>,
    /// Numbers that were passed over last.
    gaps: Vec<Range<u32>>,
}

/// What a head on a stream is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadRole {
    Request,
    Trailers,
}

impl ClientStreams {
    /// Takes a head on this stream, which it ends or not. The error ends the connection.
    pub(super) fn head(&mut self, stream: u32, ends: bool) -> Result<HeadRole, Reason> {
        if stream.is_multiple_of(2) {
            // The connection itself, or a stream that only a server opens.
            return Err(Reason::PROTOCOL_ERROR);
        }
        if stream > self.newest {
            self.open(stream, ends);
            return Ok(HeadRole::Request);
        }
        if !self.is_open(stream) {
            let is_gap = self.gaps.iter().any(|gap| gap.contains(&stream));
            return Err(if is_gap { Reason::PROTOCOL_ERROR } else { Reason::STREAM_CLOSED });
        }
        if ends {
            self.end(stream);
        }
        Ok(HeadRole::Trailers)
    }

    /// Takes DATA on this stream, which it ends or not. The error ends the connection. Streams that were never opened are left to h2.
    pub(super) fn data(&mut self, stream: u32, ends: bool) -> Result<(), Reason> {
        let was_opened = stream <= self.newest && !stream.is_multiple_of(2);
        if was_opened && !self.is_open(stream) {
            return Err(Reason::STREAM_CLOSED);
        }
        if ends {
            self.end(stream);
        }
        Ok(())
    }

    /// The client has ended or reset the stream.
    pub(super) fn end(&mut self, stream: u32) {
        if let Ok(place) = self.open.binary_search(&stream) {
            self.open.remove(place);
        }
    }

    fn open(&mut self, stream: u32, ends: bool) {
        let next = if self.newest == 0 { 1 } else { self.newest + 2 };
        if stream > next {
            make_room(&mut self.gaps, MOST_GAPS);
            self.gaps.push(next..stream);
        }
        self.newest = stream;
        if !ends {
            make_room(&mut self.open, MOST_OPEN);
            self.open.push(stream);
        }
    }

    fn is_open(&self, stream: u32) -> bool {
        self.open.binary_search(&stream).is_ok()
    }
}

/// Forgets the oldest where there are `most`.
fn make_room<T>(list: &mut Vec<T>, most: usize) {
    if list.len() == most {
        list.remove(0);
    }
}

/// Far more than may be open at once. Those that we have refused count until their client ends them.
const MOST_OPEN: usize = 1024;

/// Clients seldom pass over numbers.
const MOST_GAPS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_opened_once_in_ascending_order_and_end_once() {
        let mut streams = ClientStreams::default();
        assert_eq!(streams.head(1, false), Ok(HeadRole::Request));
        assert_eq!(streams.head(7, true), Ok(HeadRole::Request));
        assert_eq!(streams.data(1, false), Ok(()));
        assert_eq!(streams.head(1, true), Ok(HeadRole::Trailers));
        assert_eq!(streams.head(1, true), Err(Reason::STREAM_CLOSED));
        assert_eq!(streams.data(1, true), Err(Reason::STREAM_CLOSED));
        assert_eq!(streams.data(7, true), Err(Reason::STREAM_CLOSED));
        for unopened in [0, 2, 8, 3, 5] {
            assert_eq!(streams.head(unopened, true), Err(Reason::PROTOCOL_ERROR), "{unopened}");
        }
        assert_eq!(streams.data(9, true), Ok(()));
        assert_eq!(streams.head(9, false), Ok(HeadRole::Request));
        streams.end(9);
        assert_eq!(streams.head(9, true), Err(Reason::STREAM_CLOSED));
    }

    #[test]
    fn streams_that_are_never_ended_take_little_memory() {
        let mut streams = ClientStreams::default();
        for number in 0..100_000 {
            assert_eq!(streams.head(4 * number + 1, false), Ok(HeadRole::Request));
        }
        assert_eq!((streams.open.len(), streams.gaps.len()), (MOST_OPEN, MOST_GAPS));
        assert_eq!(streams.head(1, true), Err(Reason::STREAM_CLOSED));
        assert_eq!(streams.head(4 * 99_999 + 1, true), Ok(HeadRole::Trailers));
    }
}
