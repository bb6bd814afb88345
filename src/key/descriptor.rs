//! Descriptors, and the keys that they are counted under.

use std::borrow::Cow;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::Key;
use super::KeyPart;
use super::KeySpec;
use super::Selector;
use super::TooManyValues;
use super::extract::MAX_KEYS;
use super::extract::MAX_VALUES;

/// What a proxy asks about instead of a request: entries of a name and a value.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Descriptor {
    pub entries: Vec<DescriptorEntry>,
}

/// An entry of a descriptor. One without a value has the empty value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DescriptorEntry {
    pub name: String,
    pub value: String,
}

impl Descriptor {
    /// The values of all entries of this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter(move |entry| entry.name == name).map(|entry| &*entry.value)
    }

    /// Every key that `spec` makes of it: all combinations of the values of its parts. `None`: it lacks an entry.
    pub fn keys(&self, spec: &KeySpec) -> Result<Option<SmallVec<[Key; 1]>>, TooManyValues> {
        let mut keys: SmallVec<[Key; 1]> = smallvec![Key::default()];
        for part in &spec.parts {
            let values = self.different_values(part)?;
            if values.len() * keys.len() > MAX_KEYS {
                return Err(TooManyValues);
            }
            let with_values = keys.iter().flat_map(|key| {
                values.iter().map(move |value| {
                    let mut key = key.clone();
                    key.push(value.as_bytes());
                    key
                })
            });
            keys = with_values.collect();
        }
        Ok(Some(keys).filter(|keys| !keys.is_empty()))
    }

    /// The different values of a part in it. None where it lacks the entry.
    pub fn different_values(&self, part: &KeyPart) -> Result<SmallVec<[Cow<'_, str>; 1]>, TooManyValues> {
        let mut different = SmallVec::new();
        let Selector::Descriptor(name) = &part.selector else { return Ok(different) };
        let mut sent: SmallVec<[&str; 1]> = SmallVec::new();
        for entry in self.entries.iter().filter(|entry| *entry.name == **name) {
            let value = entry.value.as_str();
            for reading in part.as_compared(value).map_err(|_| TooManyValues)? {
                if !different.contains(&reading) {
                    different.push(reading);
                }
            }
            if !sent.contains(&value) {
                sent.push(value);
            }
        }
        let is_too_many = if part.has_readings() { sent.len() > MAX_VALUES } else { different.len() > MAX_VALUES };
        if is_too_many { Err(TooManyValues) } else { Ok(different) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Spelling;

    fn spec(names: &[&str]) -> KeySpec {
        let part = |name: &&str| KeyPart { selector: Selector::Descriptor((*name).into()), spelling: Spelling::Usual };
        KeySpec { parts: names.iter().map(part).collect(), ..KeySpec::default() }
    }

    #[track_caller]
    fn check(entries: &[(&str, &str)], names: &[&str], expected: Option<&[&[&str]]>) {
        let entry = |(name, value): &(&str, &str)| DescriptorEntry { name: (*name).into(), value: (*value).into() };
        let descriptor = Descriptor { entries: entries.iter().map(entry).collect() };
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let keys = descriptor.keys(&spec(names)).expect("few values");
        let keys = keys.map(|keys| keys.iter().map(|key| key.parts().map(text).collect()).collect::<Vec<Vec<_>>>());
        let expected =
            expected.map(|keys| keys.iter().map(|key| key.iter().map(|part| (*part).into()).collect()).collect());
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_key_has_the_values_of_its_entries_and_no_others() {
        check(&[("a", "1"), ("b", "2")], &["b", "a"], Some(&[&["2", "1"]]));
        check(&[("a", "1"), ("b", "2")], &["a"], Some(&[&["1"]]));
        check(&[("a", "1")], &[], Some(&[&[]]));
        check(&[("a", "1")], &["A"], None);
        check(&[("a", "1")], &["a", "b"], None);
    }

    #[test]
    fn an_entry_without_a_value_is_there_and_empty() {
        check(&[("a", "")], &["a"], Some(&[&[""]]));
    }

    #[test]
    fn an_entry_that_comes_twice_counts_against_both_values() {
        check(&[("a", "1"), ("a", "2"), ("a", "1")], &["a"], Some(&[&["1"], &["2"]]));
    }

    #[test]
    fn more_values_than_an_honest_proxy_sends_are_refused() {
        let entries = (0..9).map(|value| DescriptorEntry { name: "a".into(), value: value.to_string() });
        assert_eq!(Descriptor { entries: entries.collect() }.keys(&spec(&["a"])), Err(TooManyValues));
    }
}
