//! The JSON of `GET /v1/decisions/stream`, read while it arrives.

use std::collections::BTreeSet;
use std::io::Read;
use std::{fmt, io};

use bytes::{Buf, Bytes};
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use tokio::sync::mpsc::Receiver;

use crate::wire::crowdsec::decision::{Decision, SentDecision, Subject, Unfollowed};

/// How many decisions a list follows. About 64 MB.
pub const MOST: usize = 1_000_000;

/// More would fill the log.
const MOST_REASONS: usize = 16;

/// One answer of the API: the changes since the last answer, or all decisions in force.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DecisionStream {
    /// It has all decisions in force: decisions that are missing in it have ended.
    pub is_from_start: bool,
    pub deleted: Vec<Subject>,
    pub new: Vec<Decision>,
    /// Why some of the new decisions are not followed, the first of each kind.
    pub unfollowed: BTreeSet<Unfollowed>,
    /// How many decisions there were beyond [`MOST`].
    pub left_out: usize,
}

impl DecisionStream {
    /// Reads an answer to its end. `new` and `deleted` may be null, missing, and in any order.
    pub(super) fn read(json: impl Read, is_from_start: bool) -> Result<Self, serde_json::Error> {
        let mut stream = Self { is_from_start, ..Self::default() };
        let mut json = serde_json::Deserializer::from_reader(json);
        Answer(&mut stream).deserialize(&mut json)?;
        json.end()?;
        Ok(stream)
    }

    fn add_new(&mut self, sent: &SentDecision) {
        if !sent.is_followed() {
            return;
        }
        match sent.read() {
            Ok(_) if self.new.len() >= MOST => self.left_out += 1,
            Ok(decision) => self.new.push(decision),
            Err(reason) if self.unfollowed.len() < MOST_REASONS => _ = self.unfollowed.insert(reason),
            Err(_) => {}
        }
    }

    fn add_deleted(&mut self, sent: &SentDecision) {
        match sent.read() {
            Ok(_) if self.deleted.len() >= MOST => self.left_out += 1,
            Ok(Decision { subject, .. }) => self.deleted.push(subject),
            // It was not followed before.
            Err(_) => {}
        }
    }
}

/// The outer object.
struct Answer<'s>(&'s mut DecisionStream);

impl<'de> DeserializeSeed<'de> for Answer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Answer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `new` and `deleted`")
    }

    fn visit_map<M: de::MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::New => map.next_value_seed(Each(|sent: &SentDecision| self.0.add_new(sent)))?,
                Key::Deleted => map.next_value_seed(Each(|sent: &SentDecision| self.0.add_deleted(sent)))?,
                Key::Other => _ = map.next_value::<de::IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    New,
    Deleted,
    #[serde(other)]
    Other,
}

/// A list of decisions, which is never whole in memory.
struct Each<F>(F);

impl<'de, F: FnMut(&SentDecision)> DeserializeSeed<'de> for Each<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_option(self)
    }
}

impl<'de, F: FnMut(&SentDecision)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of decisions")
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut list: S) -> Result<(), S::Error> {
        while let Some(sent) = list.next_element::<SentDecision>()? {
            (self.0)(&sent);
        }
        Ok(())
    }
}

// Reads a body that arrives in frames, on a thread that may block.

/// A longer answer than this is none of a Local API: a million decisions take a third of it.
const MOST_BYTES: u64 = 1 << 30;

/// A parser holds a text whole. Decisions have none that is longer.
const MOST_TEXT: usize = 64 * 1024;

/// The bytes of an answer, bounded as a whole and in each text that the JSON in it has.
#[derive(Debug)]
pub(super) struct BoundedReader {
    /// Ends when the body has ended, or can no longer be read.
    frames: Receiver<Bytes>,
    frame: Bytes,
    left: u64,
    text: TextLength,
}

/// How long the text is that the parser is within.
#[derive(Clone, Copy, Debug, Default)]
struct TextLength {
    is_within: bool,
    is_escaped: bool,
    length: usize,
}

impl BoundedReader {
    pub(super) fn new(frames: Receiver<Bytes>) -> Self {
        Self { frames, frame: Bytes::new(), left: MOST_BYTES, text: TextLength::default() }
    }
}

impl Read for BoundedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.is_empty() {
            match self.frames.blocking_recv() {
                Some(frame) => self.frame = frame,
                None => return Ok(0),
            }
            self.left = self
                .left
                .checked_sub(self.frame.len() as u64)
                .ok_or_else(|| io::Error::other(format!("the answer is longer than {} MiB", MOST_BYTES >> 20)))?;
            self.text.extend(&self.frame)?;
        }
        let length = self.frame.len().min(buffer.len());
        self.frame.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

impl TextLength {
    fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'"' => *self = Self { is_within: !self.is_within, ..Self::default() },
                b'\\' => self.is_escaped = self.is_within,
                _ => {}
            }
            self.length += 1;
            if self.length > MOST_TEXT {
                return Err(io::Error::other(format!("a text or a gap in it is longer than {} KiB", MOST_TEXT >> 10)));
            }
        }
        Ok(())
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use super::{DecisionStream, MOST_REASONS};
    #[cfg(test)]
    use crate::words::corpus;

    /// Any bytes become a bounded answer or an error.
    pub fn check(bytes: &[u8]) {
        let Ok(stream) = DecisionStream::read(bytes, false) else { return };
        assert!(stream.new.len() + stream.deleted.len() <= bytes.len() / SHORTEST, "{stream:?}");
        assert!(stream.unfollowed.len() <= MOST_REASONS);
        let words: usize = stream.unfollowed.iter().map(|reason| reason.to_string().len()).sum();
        assert!(words <= MOST_REASONS * LONGEST_REASON, "{words} bytes of reasons");
    }

    /// No decision is written with fewer bytes.
    const SHORTEST: usize = 30;

    /// A quoted character may take ten bytes.
    const LONGEST_REASON: usize = 500;

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("decision_stream", check);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use tokio::sync::mpsc;

    use super::*;

    fn read(frames: &[&[u8]]) -> io::Result<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(frames.len().max(1));
        for frame in frames {
            sender.try_send(Bytes::copy_from_slice(frame)).expect("there is room");
        }
        drop(sender);
        let mut bytes = Vec::new();
        BoundedReader::new(receiver).read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn frames_become_one_stream() {
        assert_eq!(read(&[]).unwrap(), b"");
        assert_eq!(read(&[b"{\"a\"", b"", b":1}"]).unwrap(), b"{\"a\":1}");
    }

    #[test]
    fn a_long_text_is_an_error_and_many_short_ones_are_not() {
        let many = "\"a\\\"b\",".repeat(MOST_TEXT);
        assert!(read(&[many.as_bytes()]).is_ok());
        for text in ["x".repeat(MOST_TEXT), "\\\"".repeat(MOST_TEXT / 2), " ".repeat(MOST_TEXT + 1)] {
            let error = read(&[b"\"", text.as_bytes()]).unwrap_err();
            assert_eq!(error.to_string(), "a text or a gap in it is longer than 64 KiB");
        }
    }

    fn read_decision_stream(json: &str) -> Result<DecisionStream, serde_json::Error> {
        DecisionStream::read(json.as_bytes(), false)
    }

    fn decision(origin: &str, decision_type: &str, value: &str) -> String {
        format!(
            r#"{{"duration":"3h59m59.5s","id":7,"origin":"{origin}","scenario":"manual 'ban'","scope":"Ip","type":"{decision_type}","value":"{value}"}}"#
        )
    }

    #[test]
    fn lists_may_be_null_missing_and_in_any_order() {
        let one = decision("cscli", "ban", "198.51.100.7");
        for json in [
            format!(r#"{{"deleted":null,"new":[{one}]}}"#),
            format!(r#"{{"new":[{one}],"deleted":[]}}"#),
            format!(r#"{{"more":[[{{}}]],"new":[{one}]}}"#),
        ] {
            let stream = read_decision_stream(&json).unwrap();
            assert_eq!((stream.new.len(), stream.deleted.len()), (1, 0), "{json}");
        }
        assert_eq!(read_decision_stream(r#"{"new":null,"deleted":null}"#).unwrap(), DecisionStream::default());
        assert_eq!(read_decision_stream("{}").unwrap(), DecisionStream::default());
    }

    #[test]
    fn our_own_decisions_are_not_new_and_may_be_named_when_others_are_deleted() {
        let own = decision("portcullis", "ban", "198.51.100.7");
        let stream = read_decision_stream(&format!(r#"{{"new":[{own}],"deleted":[{own}]}}"#)).unwrap();
        assert_eq!((stream.new.len(), stream.deleted.len()), (0, 1));
    }

    #[test]
    fn other_types_are_named_once() {
        let throttle = decision("cscli", "throttle", "198.51.100.7");
        let stream =
            read_decision_stream(&format!(r#"{{"new":[{throttle},{throttle}],"deleted":[{throttle}]}}"#)).unwrap();
        let reasons: Vec<_> = stream.unfollowed.iter().map(ToString::to_string).collect();
        assert_eq!((reasons, stream.new.len(), stream.deleted.len()), (vec!["of type \"throttle\"".to_owned()], 0, 0));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for json in ["", "null", "[]", "{", r#"{"new":7}"#, r#"{"new":[7]}"#, r#"{"new":[{}]}"#, "{}{}", "<html>"] {
            assert!(read_decision_stream(json).is_err(), "{json}");
        }
    }

    #[test]
    fn decisions_beyond_the_bound_are_counted() {
        let mut json = String::from(r#"{"new":["#);
        for number in 0..=MOST {
            let value = std::net::Ipv4Addr::from_bits(u32::try_from(number).unwrap());
            let comma = if number == 0 { "" } else { "," };
            write!(json, r#"{comma}{{"scope":"Ip","type":"ban","value":"{value}","duration":"1h"}}"#).unwrap();
        }
        let stream = read_decision_stream(&format!("{json}]}}")).unwrap();
        assert_eq!((stream.new.len(), stream.left_out), (MOST, 1));
    }
}
