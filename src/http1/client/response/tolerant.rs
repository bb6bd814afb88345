//! Reads a head as most clients do: some malformed heads of old applications are tolerated.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::StatusCode;
use http::Version;
use httparse::ParserConfig;
use httparse::Status;
use memchr::memchr;

use super::error::InvalidResponse;
use super::lines::HeadLines;
use super::repair::Repairs;
use super::repair::mended;
use crate::head::Fields;
use crate::head::Span;

/// The head at the front of `received`. `None`: it is not whole.
pub(super) fn read(received: &[u8], most_fields: usize) -> Result<Option<HeadLines>, InvalidResponse> {
    match read_unmended(received, most_fields) {
        Err(InvalidResponse::Head) => {
            let (text, repairs) = mended(received)?;
            let lines = read_unmended(&text, most_fields)?;
            Ok(lines.map(|lines| HeadLines { repairs, ..lines }))
        }
        lines => lines,
    }
}

fn read_unmended(received: &[u8], most_fields: usize) -> Result<Option<HeadLines>, InvalidResponse> {
    let mut few = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
    match read_into(&mut few[..most_fields.min(USUAL_FIELDS)], received) {
        Err(InvalidResponse::TooManyFields) if most_fields > USUAL_FIELDS => {
            let mut many = vec![MaybeUninit::uninit(); most_fields];
            read_into(&mut many, received)
        }
        lines => lines,
    }
}

fn read_into<'c>(
    slots: &mut [MaybeUninit<httparse::Header<'c>>],
    received: &'c [u8],
) -> Result<Option<HeadLines>, InvalidResponse> {
    let mut parsed = httparse::Response::new(&mut []);
    let config = ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, received, slots) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(InvalidResponse::TooManyFields),
        Err(httparse::Error::Status | httparse::Error::Version) => return Err(InvalidResponse::StatusLine),
        Err(_) => return Err(InvalidResponse::Head),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(InvalidResponse::StatusLine)?;
    let version = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut fields = Fields::on(&received[..length]);
    for field in parsed.headers.iter() {
        let (name, value) = (place(field.name.as_bytes(), received), place(field.value, received));
        let end = value.end + memchr(b'\n', &received[value.end..]).ok_or(InvalidResponse::Head)? + 1;
        let length = field.value.len();
        fields
            .note(name.start, value.end, end, |line| line.len() - length..line.len())
            .map_err(|_| InvalidResponse::Head)?;
    }
    let own_words = parsed.reason.filter(|reason| Some(*reason) != status.canonical_reason());
    let reason = own_words.filter(|reason| is_reason(reason.as_bytes())).map(|reason| {
        let Range { start, end } = place(reason.as_bytes(), received);
        Span::new(start, end)
    });
    Ok(Some(HeadLines { status, version, reason, fields, repairs: Repairs::default(), length }))
}

/// Where a part of `whole` stands in it.
fn place(part: &[u8], whole: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}

/// Whether a reason phrase may have these bytes (RFC 9112, section 4).
fn is_reason(phrase: &[u8]) -> bool {
    phrase.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

/// Most responses have fewer fields.
const USUAL_FIELDS: usize = 100;
