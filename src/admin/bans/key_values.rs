//! Reads the key of a ban: an object of texts, each name once.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::Visitor;

/// For serde: a map without a repeated name, of which one value would be lost.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_map(KeyVisitor).map(Some)
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut entries: M) -> Result<Self::Value, M::Error> {
        let mut key = BTreeMap::new();
        while let Some((name, value)) = entries.next_entry()? {
            if key.insert(name, value).is_some() {
                return Err(M::Error::custom("a name is repeated"));
            }
        }
        Ok(key)
    }
}
