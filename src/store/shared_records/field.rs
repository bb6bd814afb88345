//! What gateways write.

/// A part of what a gateway lets the others know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Field {
    pub name: String,
    pub content: Vec<u8>,
}

/// The longest content, in bytes.
pub const MAX_FIELD: usize = 1 << 20;
