//! One decoded field.

use bytes::Bytes;
use http::HeaderName;
use http::HeaderValue;

/// A name and a value. Invalid ones are marked, so that the dynamic table can hold them like the others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::listen::http2) struct Field {
    pub(in crate::listen::http2) name: Name,
    /// `None`: the value has bytes that no value may have.
    pub(in crate::listen::http2) value: Option<HeaderValue>,
    /// In bytes, as RFC 7541 (section 4.1) counts it.
    pub(in crate::listen::http2) size: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::listen::http2) enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    /// A name that no request may have: an unknown pseudo-header, capitals, bytes that HTTP/1.1 cannot carry. With its
    /// length.
    Invalid(usize),
    Field(HeaderName),
}

impl Field {
    pub(super) fn new(name: Name, value: &[u8]) -> Self {
        let size = name.length() + value.len() + OVERHEAD;
        Self { value: parse_value(value), name, size }
    }

    pub(super) fn of_static_table(name: &'static str, value: &'static str) -> Self {
        let size = name.len() + value.len() + OVERHEAD;
        Self { name: Name::parse(name.as_bytes()), value: Some(HeaderValue::from_static(value)), size }
    }
}

/// Checks a value. It may neither begin nor end with a blank (RFC 9113, section 8.2.1).
fn parse_value(value: &[u8]) -> Option<HeaderValue> {
    if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
        return None;
    }
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(value)).ok()
}

impl Name {
    pub(super) fn parse(name: &[u8]) -> Self {
        match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            name if name.iter().any(u8::is_ascii_uppercase) => Self::Invalid(name.len()),
            name => HeaderName::from_bytes(name).map_or(Self::Invalid(name.len()), Self::Field),
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Method => ":method".len(),
            Self::Scheme => ":scheme".len(),
            Self::Authority => ":authority".len(),
            Self::Path => ":path".len(),
            Self::Protocol => ":protocol".len(),
            Self::Invalid(length) => *length,
            Self::Field(name) => name.as_str().len(),
        }
    }
}

/// In bytes: what each field counts beside its text.
const OVERHEAD: usize = 32;
