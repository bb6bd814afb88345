//! Parses and writes the fields of heads and trailers.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::header;

use super::InvalidMessage;
use super::WriteBuffer;

/// Adds the fields that were parsed from `head`, in their order. The values share the memory of `head`.
pub fn read(head: &Bytes, parsed: &[httparse::Header<'_>], fields: &mut HeaderMap) -> Result<(), InvalidMessage> {
    for field in parsed {
        let name = name(field.name.as_bytes())?;
        let value = HeaderValue::from_maybe_shared(head.slice_ref(field.value)).map_err(|_| InvalidMessage::Field)?;
        fields.try_append(name, value).map_err(|_| InvalidMessage::Field)?;
    }
    Ok(())
}

/// Parses the name of a field. The usual spellings of the usual names are matched first, which is faster.
pub fn name(bytes: &[u8]) -> Result<HeaderName, InvalidMessage> {
    Ok(match bytes {
        b"Host" | b"host" => header::HOST,
        b"User-Agent" | b"user-agent" => header::USER_AGENT,
        b"Accept" | b"accept" => header::ACCEPT,
        b"Accept-Encoding" | b"accept-encoding" => header::ACCEPT_ENCODING,
        b"Accept-Language" | b"accept-language" => header::ACCEPT_LANGUAGE,
        b"Cookie" | b"cookie" => header::COOKIE,
        b"Referer" | b"referer" => header::REFERER,
        b"Connection" | b"connection" => header::CONNECTION,
        b"Content-Length" | b"content-length" => header::CONTENT_LENGTH,
        b"Content-Type" | b"content-type" => header::CONTENT_TYPE,
        b"Cache-Control" | b"cache-control" => header::CACHE_CONTROL,
        b"Date" | b"date" => header::DATE,
        b"Server" | b"server" => header::SERVER,
        b"ETag" | b"etag" => header::ETAG,
        b"Vary" | b"vary" => header::VARY,
        b"Set-Cookie" | b"set-cookie" => header::SET_COOKIE,
        b"Last-Modified" | b"last-modified" => header::LAST_MODIFIED,
        b"Transfer-Encoding" | b"transfer-encoding" => header::TRANSFER_ENCODING,
        other => HeaderName::from_bytes(other).map_err(|_| InvalidMessage::Field)?,
    })
}

/// Writes fields, each on a line, without the empty line behind them.
pub fn write(fields: &HeaderMap, out: &mut WriteBuffer) {
    let out = out.small();
    for (name, value) in fields {
        line(name, value.as_bytes(), out);
    }
}

/// Writes one field on a line.
pub fn line(name: &HeaderName, value: &[u8], out: &mut Vec<u8>) {
    let name = name.as_str().as_bytes();
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_every_spelling() {
        let usual = [
            "Host",
            "User-Agent",
            "Accept",
            "Accept-Encoding",
            "Accept-Language",
            "Cookie",
            "Referer",
            "Connection",
            "Content-Length",
            "Content-Type",
            "Cache-Control",
            "Date",
            "Server",
            "ETag",
            "Vary",
            "Set-Cookie",
            "Last-Modified",
            "Transfer-Encoding",
            "X-Other",
        ];
        for written in usual {
            for spelling in [written.to_owned(), written.to_lowercase(), written.to_uppercase()] {
                assert_eq!(name(spelling.as_bytes()).unwrap().as_str(), written.to_lowercase());
            }
        }
        for none in ["", "Host ", " Host", "H\0st", "X:"] {
            assert_eq!(name(none.as_bytes()), Err(InvalidMessage::Field));
        }
    }
}
