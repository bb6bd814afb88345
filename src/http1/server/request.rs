//! Parses the head of a client's request, strictly, and the framing of its body.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::TE;
use http::header::TRANSFER_ENCODING;
use http::header::UPGRADE;
use memchr::memchr;

use crate::http1::grammar::BodyLength;
use crate::http1::grammar::fields;
use crate::http1::grammar::target;

/// The limits of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    pub bytes: usize,
    pub fields: usize,
}

/// A request without its body.
#[derive(Debug)]
pub struct RequestHead {
    pub method: Method,
    pub target: Uri,
    pub version: Version,
    pub fields: HeaderMap,
    pub framing: RequestFraming,
}

/// What the fields say of what follows the head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestFraming {
    pub body: BodyLength,
    /// The connection stays open for another request.
    pub keeps_alive: bool,
    pub options: RequestOptions,
}

/// Other fields that decide how the request is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestOptions {
    /// The client asks for another protocol.
    pub upgrade: bool,
    /// The client accepts trailers behind the response.
    pub trailers: bool,
}

impl RequestHead {
    /// Parses the head at the front of `read`, and returns its length; `None`: the head is not complete. The error is the
    /// status that answers an invalid head. Each byte is looked at once: names and values check their own bytes, and so
    /// no line can end in anything but CR LF.
    ///
    /// `empty_map` gives the map for the fields.
    pub fn parse(
        read: &Bytes,
        limits: HeadLimits,
        empty_map: impl FnOnce() -> HeaderMap,
    ) -> Result<Option<(Self, usize)>, StatusCode> {
        let mut rest = &read[..];
        while let Some(behind) = rest.strip_prefix(LINE_END) {
            rest = behind;
        }
        let Some(first) = line(&mut rest)? else { return check_method(rest).map(|()| None) };
        let (method, target, version) = request_line(first, read)?;
        let mut fields = empty_map();
        loop {
            let Some(line) = line(&mut rest)? else { return Ok(None) };
            if line.is_empty() {
                break;
            }
            if fields.len() == limits.fields {
                return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            }
            let (name, value) = field(line, read).ok_or(StatusCode::BAD_REQUEST)?;
            fields.try_append(name, value).map_err(|_| StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)?;
        }
        let length = read.len() - rest.len();
        if length > limits.bytes {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let framing = RequestFraming::from_fields(&mut fields, version)?;
        Ok(Some((Self { method, target, version, fields, framing }, length)))
    }
}

/// Takes the next line, without its line end. `None`: the line is not complete.
fn line<'r>(rest: &mut &'r [u8]) -> Result<Option<&'r [u8]>, StatusCode> {
    let Some(end) = memchr(b'\r', rest) else { return Ok(None) };
    match rest.get(end + 1) {
        Some(b'\n') => {
            let line = &rest[..end];
            *rest = &rest[end + LINE_END.len()..];
            Ok(Some(line))
        }
        Some(_) => Err(StatusCode::BAD_REQUEST),
        None => Ok(None),
    }
}

/// Checks the beginning of a request line that is not complete.
fn check_method(line: &[u8]) -> Result<(), StatusCode> {
    let word = line.split(|byte| matches!(byte, b' ' | b'\r')).next().unwrap_or_default();
    let is_valid = matches!(line, b"" | b"\r") || Method::from_bytes(word).is_ok();
    if is_valid { Ok(()) } else { Err(StatusCode::BAD_REQUEST) }
}

fn request_line(line: &[u8], read: &Bytes) -> Result<(Method, Uri, Version), StatusCode> {
    let (line, version) = match line.strip_suffix(b" HTTP/1.1") {
        Some(line) => (line, Version::HTTP_11),
        None => (line.strip_suffix(b" HTTP/1.0").ok_or(StatusCode::BAD_REQUEST)?, Version::HTTP_10),
    };
    let space = memchr(b' ', line).ok_or(StatusCode::BAD_REQUEST)?;
    let (method, target) = (&line[..space], &line[space + 1..]);
    // `Uri` skips a fragment without checking its bytes.
    if !target.iter().all(|byte| *byte > b' ' && *byte != DELETE) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let target = target::escape(read.slice_ref(target));
    if target.len() > MAX_TARGET {
        return Err(StatusCode::URI_TOO_LONG);
    }
    let method = Method::from_bytes(method).map_err(|_| StatusCode::BAD_REQUEST)?;
    let target = Uri::from_maybe_shared(target).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok((method, target, version))
}

/// The name and the value of a field. The value shares the memory of `read`.
fn field(line: &[u8], read: &Bytes) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = fields::name(&line[..colon]).ok()?;
    let value = HeaderValue::from_maybe_shared(read.slice_ref(trim(&line[colon + 1..]))).ok()?;
    Some((name, value))
}

/// Removes the blanks around a value.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

const LINE_END: &[u8] = b"\r\n";
const DELETE: u8 = 0x7f;

/// The longest target that `Uri` can hold.
const MAX_TARGET: usize = u16::MAX as usize - 1;

impl RequestFraming {
    /// Reads all fields in one pass. Afterwards there is at most one `Content-Length`, and none beside chunks.
    fn from_fields(fields: &mut HeaderMap, version: Version) -> Result<Self, StatusCode> {
        let is_persistent = version == Version::HTTP_11;
        let mut framing_fields = FramingFields::default();
        for (name, value) in &*fields {
            if *name == CONTENT_LENGTH {
                framing_fields.lengths += 1;
                framing_fields.length.get_or_insert(value);
                framing_fields.has_odd_lengths |=
                    framing_fields.length.and_then(number) != number(value) || number(value).is_none();
            } else if *name == TRANSFER_ENCODING {
                framing_fields.encoding = Some(value);
            } else if *name == CONNECTION {
                framing_fields.closes |= list_has(value, b"close");
                framing_fields.asks_keep_alive |= list_has(value, b"keep-alive");
            } else if *name == UPGRADE {
                framing_fields.options.upgrade = is_persistent;
            } else if *name == TE {
                framing_fields.options.trailers |= list_has(value, b"trailers");
            }
        }
        let mut framing = Self {
            body: framing_fields.body_length(is_persistent)?,
            keeps_alive: !framing_fields.closes && (is_persistent || framing_fields.asks_keep_alive),
            options: framing_fields.options,
        };
        if framing.body == BodyLength::Chunked && framing_fields.lengths > 0 {
            // A proxy in front may have used the length: the bytes behind the body are not trusted.
            framing.keeps_alive = false;
            fields.remove(CONTENT_LENGTH);
        } else if framing_fields.lengths > 1
            && let Some(length) = framing_fields.length.cloned()
        {
            fields.insert(CONTENT_LENGTH, length);
        }
        Ok(framing)
    }
}

/// The fields that frame the body, as they were sent.
#[derive(Debug, Default)]
struct FramingFields<'f> {
    length: Option<&'f HeaderValue>,
    lengths: usize,
    /// The lengths differ, or one is not a number.
    has_odd_lengths: bool,
    /// The last `Transfer-Encoding` line: the last coding frames the body.
    encoding: Option<&'f HeaderValue>,
    closes: bool,
    asks_keep_alive: bool,
    options: RequestOptions,
}

impl FramingFields<'_> {
    fn body_length(&self, allows_chunked: bool) -> Result<BodyLength, StatusCode> {
        if let Some(encoding) = self.encoding {
            let last = encoding.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default();
            let is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            return if is_chunked && allows_chunked { Ok(BodyLength::Chunked) } else { Err(StatusCode::BAD_REQUEST) };
        }
        let Some(length) = self.length else { return Ok(BodyLength::Known(0)) };
        match number(length) {
            Some(length) if length > MAX_LENGTH => Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            Some(length) if !self.has_odd_lengths => Ok(BodyLength::Known(length)),
            _ => Err(StatusCode::BAD_REQUEST),
        }
    }
}

/// The value as a number, if it is digits alone.
fn number(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// Whether a comma-separated list has this element.
pub fn list_has(list: &HeaderValue, element: &[u8]) -> bool {
    list.as_bytes().split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(element))
}

/// A longer body cannot be meant.
const MAX_LENGTH: u64 = u64::MAX - 2;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
