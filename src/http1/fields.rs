//! Fields of heads and trailers, from bytes and to bytes.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;

use super::Malformed;
use super::Outbox;

/// Adds what was parsed from `head` to `fields`, in its order. Values are parts of `head`, not copies.
pub fn read(head: &Bytes, parsed: &[httparse::Header<'_>], fields: &mut HeaderMap) -> Result<(), Malformed> {
    for field in parsed {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Malformed::Field)?;
        let value = HeaderValue::from_maybe_shared(head.slice_ref(field.value)).map_err(|_| Malformed::Field)?;
        fields.try_append(name, value).map_err(|_| Malformed::Field)?;
    }
    Ok(())
}

/// Writes fields, each on its line; the empty line behind them is not written.
pub fn write(fields: &HeaderMap, out: &mut Outbox) {
    let out = out.small();
    for (name, value) in fields {
        line(name, value.as_bytes(), out);
    }
}

/// Writes one field on its line.
pub fn line(name: &HeaderName, value: &[u8], out: &mut Vec<u8>) {
    let name = name.as_str().as_bytes();
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
