//! The JSON of `GET /v1/decisions/stream`, read while it arrives.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::Deserializer;
use serde::de;
use serde::de::DeserializeSeed;
use serde::de::SeqAccess;
use serde::de::Visitor;

use super::decision::Decision;
use super::decision::SentDecision;
use super::decision::Subject;
use super::decision::Unfollowed;

/// One answer of the API: what has changed since the last one, or all decisions in force.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DecisionStream {
    /// It has all decisions in force, and what is not in it is over.
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

/// How many decisions a list follows. About 64 MB.
pub const MOST: usize = 1_000_000;

/// More would fill the log.
const MOST_REASONS: usize = 16;

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

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn read(json: &str) -> Result<DecisionStream, serde_json::Error> {
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
            let stream = read(&json).unwrap();
            assert_eq!((stream.new.len(), stream.deleted.len()), (1, 0), "{json}");
        }
        assert_eq!(read(r#"{"new":null,"deleted":null}"#).unwrap(), DecisionStream::default());
        assert_eq!(read("{}").unwrap(), DecisionStream::default());
    }

    #[test]
    fn our_own_decisions_are_not_new_and_may_be_named_when_others_are_deleted() {
        let own = decision("portcullis", "ban", "198.51.100.7");
        let stream = read(&format!(r#"{{"new":[{own}],"deleted":[{own}]}}"#)).unwrap();
        assert_eq!((stream.new.len(), stream.deleted.len()), (0, 1));
    }

    #[test]
    fn other_types_are_named_once() {
        let throttle = decision("cscli", "throttle", "198.51.100.7");
        let stream = read(&format!(r#"{{"new":[{throttle},{throttle}],"deleted":[{throttle}]}}"#)).unwrap();
        let reasons: Vec<_> = stream.unfollowed.iter().map(ToString::to_string).collect();
        assert_eq!((reasons, stream.new.len(), stream.deleted.len()), (vec!["of type \"throttle\"".to_owned()], 0, 0));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for json in ["", "null", "[]", "{", r#"{"new":7}"#, r#"{"new":[7]}"#, r#"{"new":[{}]}"#, "{}{}", "<html>"] {
            assert!(read(json).is_err(), "{json}");
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
        let stream = read(&format!("{json}]}}")).unwrap();
        assert_eq!((stream.new.len(), stream.left_out), (MOST, 1));
    }
}
