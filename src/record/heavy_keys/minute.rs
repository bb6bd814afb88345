//! What one gateway counted by key in one minute, as it tells it to the others.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use super::CountsByKey;
use super::KeyCounts;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::key::OperatorKey;
use crate::key::OperatorPart;

/// The heaviest keys of one minute. User names are masked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct MinuteRecord {
    pub clients: Vec<KeyRecord>,
    /// By the name of the limit.
    pub limits: Vec<(String, Vec<KeyRecord>)>,
}

/// What was counted of one key.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct KeyRecord {
    hash: KeyHash,
    /// Each selector and its value.
    parts: Vec<(String, String)>,
    requests: u64,
    denied: u64,
    first: Timestamp,
    last: Timestamp,
}

/// How many keys of a minute are told to others: so many by requests, and so many by denials.
const TOLD: usize = 50;

impl MinuteRecord {
    /// The number of the minute of this moment, since the Unix epoch.
    pub fn number(moment: Timestamp) -> u64 {
        moment.as_micros() / 60_000_000
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("names and counts can be written")
    }

    /// `None`: another version has written it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The keys of a limit, or the clients.
    pub fn keys(&self, limit: Option<&str>) -> &[KeyRecord] {
        match limit {
            None => &self.clients,
            Some(limit) => self.limits.iter().find(|(name, _)| name == limit).map_or(&[], |(_, keys)| keys),
        }
    }
}

impl KeyRecord {
    pub(super) fn heaviest(mut counts: CountsByKey) -> Vec<Self> {
        counts.keep_heaviest(TOLD);
        let masked = |part: &OperatorPart| (part.selector.clone(), part.masked.as_ref().unwrap_or(&part.value).clone());
        let record = |(hash, counts): (KeyHash, KeyCounts)| Self {
            hash,
            parts: counts.key.parts.iter().map(masked).collect(),
            requests: counts.requests,
            denied: counts.denied,
            first: counts.first,
            last: counts.last,
        };
        let mut records: Vec<Self> = counts.0.into_iter().map(record).collect();
        // In one order, so that a record that says the same has the same bytes.
        records.sort_unstable_by_key(|record| record.hash);
        records
    }

    /// Adds it to what is known of its key. Where the key is known in clear here, it stays so.
    pub fn add_to(&self, CountsByKey(counts): &mut CountsByKey) {
        let counted = |key: Arc<OperatorKey>| KeyCounts {
            key,
            requests: self.requests,
            denied: self.denied,
            first: self.first,
            last: self.last,
        };
        if let Some(known) = counts.get_mut(&self.hash) {
            let counted = counted(Arc::clone(&known.key));
            known.merge(&counted);
            return;
        }
        let part = |(selector, value): &(String, String)| OperatorPart {
            selector: selector.clone(),
            value: value.clone(),
            masked: None,
        };
        let key = OperatorKey { parts: self.parts.iter().map(part).collect() };
        counts.insert(self.hash, counted(Arc::new(key)));
    }

    pub fn last(&self) -> Timestamp {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_is_told_masked_and_stays_in_clear_where_it_is_known() {
        let key = |value: &str, masked: Option<&str>| {
            let part = OperatorPart {
                selector: "param.user".to_owned(),
                value: value.to_owned(),
                masked: masked.map(str::to_owned),
            };
            Arc::new(OperatorKey { parts: vec![part] })
        };
        let counts = KeyCounts {
            key: key("alice", Some("a***1f3c")),
            requests: 3,
            denied: 1,
            first: Timestamp::from_micros(5),
            last: Timestamp::from_micros(9),
        };
        let told = KeyRecord::heaviest(CountsByKey([(KeyHash(7), counts.clone())].into()));
        let record = MinuteRecord { clients: Vec::new(), limits: vec![("login".to_owned(), told)] };
        let read = MinuteRecord::from_bytes(&record.to_bytes()).unwrap();
        assert!(!String::from_utf8_lossy(&record.to_bytes()).contains("alice"));
        let mut elsewhere = CountsByKey::default();
        read.keys(Some("login")).iter().for_each(|key| key.add_to(&mut elsewhere));
        assert_eq!(elsewhere.0[&KeyHash(7)].key, key("a***1f3c", None));
        let mut here = CountsByKey([(KeyHash(7), counts)].into());
        read.keys(Some("login")).iter().for_each(|key| key.add_to(&mut here));
        assert_eq!((here.0[&KeyHash(7)].requests, here.0[&KeyHash(7)].denied), (6, 2));
        assert_eq!(here.0[&KeyHash(7)].key, key("alice", Some("a***1f3c")));
        assert!(read.keys(None).is_empty() && read.keys(Some("other")).is_empty());
    }
}
