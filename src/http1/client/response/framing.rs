//! Where the body of a response ends, and whether its connection stays open.

use http::Method;
use http::StatusCode;
use http::Version;

use super::error::InvalidResponse;
use super::lines::HeadLines;
use crate::head::Fields;
use crate::head::KnownName;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::elements;
use crate::http1::grammar::list_has;

/// The length of the body of the response to `method`, and whether the server keeps the connection open.
pub(super) fn framing_of(lines: &HeadLines, method: &Method) -> Result<(BodyLength, bool), InvalidResponse> {
    let HeadLines { status, version, .. } = *lines;
    let framing = Framing::of(&lines.fields)?;
    let body = framing.body(status, method)?;
    let may_send_body_anyway = status == StatusCode::NO_CONTENT && framing.announces_body();
    Ok((body, body != BodyLength::UntilClose && !may_send_body_anyway && framing.keeps_alive(version)))
}

/// What the fields of a response say of its framing.
#[derive(Default)]
struct Framing {
    coding: TransferCoding,
    length: Option<u64>,
    closes: bool,
    asks_keep_alive: bool,
}

/// The transfer codings of all `Transfer-Encoding` lines, without `identity`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum TransferCoding {
    #[default]
    None,
    Chunked,
    /// The client would get the body still coded, because `Transfer-Encoding` is not forwarded.
    Unsupported,
}

impl Framing {
    fn of(fields: &Fields) -> Result<Self, InvalidResponse> {
        let says = |option| fields.get_all(KnownName::CONNECTION).any(|value| list_has(value, option));
        let mut framing = Self { closes: says(b"close"), asks_keep_alive: says(b"keep-alive"), ..Self::default() };
        for value in fields.get_all(KnownName::CONTENT_LENGTH) {
            framing.note_length(value)?;
        }
        let codings = fields.get_all(KnownName::TRANSFER_ENCODING).flat_map(elements);
        codings.for_each(|coding| framing.coding.add(coding));
        Ok(framing)
    }

    /// All values must be the same number.
    fn note_length(&mut self, value: &[u8]) -> Result<(), InvalidResponse> {
        for element in elements(value) {
            let digits = str::from_utf8(element).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(InvalidResponse::BodyLength)?;
            if self.length.replace(length).is_some_and(|before| before != length) {
                return Err(InvalidResponse::BodyLength);
            }
        }
        Ok(())
    }

    /// The length of the body of a response to `method` (RFC 9112, section 6.3).
    fn body(&self, status: StatusCode, method: &Method) -> Result<BodyLength, InvalidResponse> {
        let is_empty = *method == Method::HEAD
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match (self.coding, self.length) {
            (TransferCoding::Unsupported, _) => Err(InvalidResponse::Coding),
            _ if is_empty => Ok(BodyLength::Known(0)),
            (TransferCoding::Chunked, _) => Ok(BodyLength::Chunked),
            (TransferCoding::None, None) => Ok(BodyLength::UntilClose),
            (TransferCoding::None, Some(length)) => Ok(BodyLength::Known(length)),
        }
    }

    /// Whether the head announces a body. A server that does so where none is allowed is likely to send it.
    fn announces_body(&self) -> bool {
        self.coding != TransferCoding::None || self.length.is_some_and(|length| length > 0)
    }

    fn keeps_alive(&self, version: Version) -> bool {
        // An older server that sends chunks may not know where they end.
        let is_old = version == Version::HTTP_10;
        !self.closes && (!is_old || self.asks_keep_alive && self.coding == TransferCoding::None)
    }
}

impl TransferCoding {
    /// Adds the next coding of the list.
    fn add(&mut self, coding: &[u8]) {
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        *self = match self {
            _ if is(b"") || is(b"identity") => *self,
            Self::None if is(b"chunked") => Self::Chunked,
            _ => Self::Unsupported,
        };
    }
}
