//! Keys on their way, as one run of bytes.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error;
use serde::de::Visitor;

/// Keys as the memory store writes them. Bytes of a `Vec` would be written and read one by one.
#[derive(Debug)]
pub(in crate::store) struct KeysPiece(pub(super) Vec<u8>);

impl Serialize for KeysPiece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for KeysPiece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = KeysPiece;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of keys")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<KeysPiece, E> {
        Ok(KeysPiece(bytes.to_vec()))
    }
}
