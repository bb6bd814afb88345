//! One field as a head of HTTP/2 has it.

use bytes::Bytes;
use http::HeaderName;
use http::HeaderValue;

/// Name and value. What they may not be is known of them, so that a table can hold them all the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::listen::http2) struct Field {
    pub(in crate::listen::http2) name: Name,
    /// `None`: it has bytes that no value may have.
    pub(in crate::listen::http2) value: Option<HeaderValue>,
    /// As tables and lists count it (RFC 7541, section 4.1).
    pub(in crate::listen::http2) size: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::listen::http2) enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    /// What no request has: a pseudo-header nobody knows, capitals, bytes that HTTP/1.1 cannot carry.
    Unfit(usize),
    Field(HeaderName),
}

impl Field {
    pub(super) fn new(name: Name, value: &[u8]) -> Self {
        let size = name.length() + value.len() + OVERHEAD;
        Self { value: read_value(value), name, size }
    }

    pub(super) fn of_table(name: &'static str, value: &'static str) -> Self {
        let size = name.len() + value.len() + OVERHEAD;
        Self { name: Name::read(name.as_bytes()), value: Some(HeaderValue::from_static(value)), size }
    }
}

/// A value neither begins nor ends with a blank (RFC 9113, section 8.2.1).
fn read_value(value: &[u8]) -> Option<HeaderValue> {
    if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
        return None;
    }
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(value)).ok()
}

impl Name {
    pub(super) fn read(name: &[u8]) -> Self {
        match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            name if name.iter().any(u8::is_ascii_uppercase) => Self::Unfit(name.len()),
            name => HeaderName::from_bytes(name).map_or(Self::Unfit(name.len()), Self::Field),
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Method => ":method".len(),
            Self::Scheme => ":scheme".len(),
            Self::Authority => ":authority".len(),
            Self::Path => ":path".len(),
            Self::Protocol => ":protocol".len(),
            Self::Unfit(length) => *length,
            Self::Field(name) => name.as_str().len(),
        }
    }
}

const OVERHEAD: usize = 32;
