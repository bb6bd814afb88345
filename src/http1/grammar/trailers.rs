//! Parses and writes the fields of trailers.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;

use super::InvalidMessage;
use super::WriteBuffer;
use crate::head;

/// The fields that were parsed from `lines`, in their order. The values share the memory of `lines`.
pub(super) fn read(lines: &Bytes, parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, InvalidMessage> {
    let mut trailers = HeaderMap::new();
    for field in parsed {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| InvalidMessage::Field)?;
        let value = HeaderValue::from_maybe_shared(lines.slice_ref(field.value)).map_err(|_| InvalidMessage::Field)?;
        trailers.try_append(name, value).map_err(|_| InvalidMessage::Field)?;
    }
    Ok(trailers)
}

/// Writes trailers, each on a line, without the empty line behind them.
pub(super) fn write(trailers: &HeaderMap, out: &mut WriteBuffer) {
    for (name, value) in trailers {
        head::write_line(name.as_str().as_bytes(), value.as_bytes(), out.small());
    }
}
