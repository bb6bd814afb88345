//! Walks over an XML text with a lenient reader.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::BytesStart;
use quick_xml::events::Event;

use crate::request::percent;

/// Whether a text is XML from its first to its last byte, and declares no entities.
pub(crate) fn is_well_formed(text: &[u8]) -> bool {
    walk(&percent::text(Cow::Borrowed(text)), &mut |_| {})
}

/// The encoding that the XML declaration names.
pub(crate) fn declared_encoding(text: &[u8]) -> Option<&str> {
    let start = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let declaration = &start[..memchr::memmem::find(&start[..start.len().min(MAX_DECLARATION)], b"?>")?];
    let declaration = str::from_utf8(declaration).ok()?.strip_prefix("<?xml")?;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split(quote).next()
}

pub(super) enum XmlPiece<'t> {
    /// An element, by its local name.
    Open(&'t str),
    /// An attribute of the element, by its local name.
    Attribute(&'t str),
    Text(&'t str),
    /// A comment or a section between two texts.
    Break,
    Close,
}

/// Calls `found` for each part of a text. Returns whether all of it was XML.
pub(super) fn walk(text: &str, found: &mut dyn FnMut(XmlPiece<'_>)) -> bool {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim_start());
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut open: Vec<String> = Vec::new();
    let (mut roots, mut odd) = (0, false);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(Event::Start(start)) if open.len() < MAX_DEPTH => {
                roots += usize::from(open.is_empty());
                found(XmlPiece::Open(start.local_name().as_ref()));
                attributes(&start, found);
                open.push(start.name().as_ref().to_owned());
            }
            Ok(Event::Empty(start)) => {
                roots += usize::from(open.is_empty());
                found(XmlPiece::Open(start.local_name().as_ref()));
                attributes(&start, found);
                found(XmlPiece::Close);
            }
            Ok(Event::End(end)) => match open.pop() {
                Some(name) => {
                    odd |= name != end.name().as_ref();
                    found(XmlPiece::Close);
                }
                None => odd = true,
            },
            Ok(Event::Text(text)) => {
                odd |= (open.is_empty() && !text.trim().is_empty()) || text.contains('&');
                found(XmlPiece::Text(&text.xml10_content()));
            }
            Ok(Event::CData(text)) => {
                found(XmlPiece::Break);
                found(XmlPiece::Text(&text.xml10_content()));
            }
            Ok(Event::GeneralRef(name)) => match character(&name) {
                Some(char) => found(XmlPiece::Text(char.encode_utf8(&mut [0; 4]))),
                // An application that knows the entity reads another text.
                None => odd = true,
            },
            Ok(Event::Comment(_) | Event::PI(_)) => found(XmlPiece::Break),
            Ok(Event::Decl(_)) => {}
            Ok(Event::DocType(text)) => odd |= text.contains('['),
            Ok(Event::Start(_)) | Err(_) => {
                odd = true;
                break;
            }
        }
    }
    let is_whole = open.is_empty();
    for _ in &open {
        found(XmlPiece::Close);
    }
    is_whole && roots == 1 && !odd
}

fn attributes(start: &BytesStart<'_>, found: &mut dyn FnMut(XmlPiece<'_>)) {
    for attribute in start.attributes().with_checks(false).flatten() {
        found(XmlPiece::Attribute(attribute.key.local_name().as_ref()));
    }
}

/// The character of a reference: one of the five predefined names, or a number.
fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => None,
        };
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?)
}

/// Deeper than honest documents, and than most libraries read.
const MAX_DEPTH: usize = 128;

/// In bytes: a declaration is shorter.
const MAX_DECLARATION: usize = 256;
