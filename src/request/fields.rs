//! Looks up fields in the start of a request body.
//!
//! The readers of bodies are our own, because a standard parser reads a body in one way, and a rule must see the value
//! in every way that some application may read it.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::content_type::BodyKinds;
use super::content_type::ContentType;
use super::content_type::is_plain_charset;
use super::encoding;
use super::json;
use super::json::WellFormed;
use super::multipart;
use super::nul;
use super::unambiguous::UnambiguousKind;
use super::urlencoded;
use super::utf16;
use super::xml;
use crate::head::Fields;

/// The fields of a body. They are looked up in the format that the body has and in the formats that its `Content-Type`
/// declares, with and without its declared encodings. The body is kept, without a copy where it is not encoded, and
/// read again for every lookup, so that the size of the body bounds the memory.
pub struct BodyFields {
    texts: Vec<BodyText>,
    boundaries: Vec<Vec<u8>>,
    is_fully_read: bool,
    /// The declared format, where every application agrees about it.
    unambiguous: Option<UnambiguousKind>,
}

/// A body, and the formats that it is read in.
struct BodyText {
    bytes: Bytes,
    kinds: BodyKinds,
}

impl BodyFields {
    /// No fields, for those that only look at a head.
    pub const NONE: &Self = &NO_FIELDS;

    /// No fields: for requests without a body, and for those whose body no rule needs.
    pub const fn none() -> Self {
        Self { texts: Vec::new(), boundaries: Vec::new(), is_fully_read: true, unambiguous: None }
    }

    /// Whether there is no body to look fields up in.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Reads the first bytes of a body as it came on the wire. `whole`: `start` is the whole body. Compressed bodies
    /// are decoded to at most `bound` bytes.
    pub fn read(head: &Fields, start: &Bytes, whole: bool, bound: usize) -> Self {
        if start.is_empty() {
            return Self { is_fully_read: whole, ..Self::none() };
        }
        let content_type = ContentType::read(head);
        let decoded = encoding::decode(head, start, bound);
        let mut fields = Self {
            is_fully_read: whole && decoded.whole && content_type.is_plain,
            unambiguous: UnambiguousKind::read(head),
            ..Self::none()
        };
        // `Content-Encoding` may be wrong, so the body as it came is read as well.
        let is_decoded = !decoded.bodies.iter().any(|body| **body == **start);
        for body in decoded.bodies {
            let body = match body {
                Cow::Borrowed(_) => start.clone(),
                Cow::Owned(body) => body.into(),
            };
            fields.is_fully_read &= fields.add(&content_type, body);
        }
        if is_decoded {
            fields.add(&content_type, start.clone());
        }
        fields.boundaries = content_type.boundaries;
        let charsets: Vec<_> = fields.form("_charset_").collect();
        fields.is_fully_read &= charsets.iter().all(|charset| is_plain_charset(charset));
        fields
    }

    /// Whether the whole body was read and understood. If not, a field may have been missed.
    pub fn is_fully_read(&self) -> bool {
        self.is_fully_read
    }

    /// Whether no application reads any field in the body.
    pub fn has_no_field(&self) -> bool {
        let is_bare = |BodyText { bytes, kinds }: &BodyText| {
            !kinds.multipart && !kinds.json && !kinds.xml && !bytes.contains(&b'=')
        };
        self.is_fully_read && self.texts.iter().all(is_bare)
    }

    /// Every value that some application may read for the form field `name`, in a body that is urlencoded or multipart
    /// or declares to be. A name counts in every spelling that some application accepts.
    pub fn form<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        let urlencoded = self.texts.iter().filter(|text| text.kinds.urlencoded);
        let multipart = self.texts.iter().filter(|text| text.kinds.multipart);
        urlencoded.flat_map(move |text| urlencoded::values(&text.bytes, name)).chain(
            multipart
                .flat_map(move |text| multipart::values(&text.bytes, &self.boundaries, name))
                .flat_map(nul::readings),
        )
    }

    /// Every scalar at a dotted path of a JSON body. Array elements are named by their index.
    pub fn json<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        let texts = self.texts.iter().filter(|text| text.kinds.json);
        texts.flat_map(move |text| json::values(&text.bytes, path)).flat_map(nul::readings)
    }

    /// Every text of the elements at a dotted path of an XML body. The path has local names, and a number selects one
    /// of several elements with the same name.
    pub fn xml<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        self.of_elements(xml::ElementPath::dotted(path))
    }

    /// Every text of the elements with this name in an XML body.
    pub fn element<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        self.of_elements(xml::ElementPath::name(name))
    }

    fn of_elements<'a>(&'a self, path: xml::ElementPath<'a>) -> impl Iterator<Item = Cow<'a, str>> {
        let texts = self.texts.iter().filter(|text| text.kinds.xml);
        texts.flat_map(move |text| xml::values(&text.bytes, &path)).map(Cow::Owned).flat_map(nul::readings)
    }

    /// Whether the body is an XML-RPC `system.multicall`: the application runs each call in it.
    pub fn is_multicall(&self) -> bool {
        self.texts.iter().filter(|text| text.kinds.xml).any(|text| xml::is_multicall(&text.bytes))
    }

    /// Whether every application reads the form field alike: it occurs once, under exactly this name, in a body that
    /// was fully read and has the format that it declares.
    pub fn form_is_unambiguous(&self, name: &str) -> bool {
        self.unambiguous_text().is_some_and(|(unambiguous, text)| unambiguous.has_sole_form_field(text, name))
    }

    /// The same for a scalar at a dotted path of a JSON body.
    pub fn json_is_unambiguous(&self, path: &str) -> bool {
        self.unambiguous_text().is_some_and(|(unambiguous, text)| unambiguous.has_json_scalar(text, path))
    }

    /// The same for an XML element: one element is at the path, and its text has one reading.
    pub fn xml_is_unambiguous(&self, path: &str) -> bool {
        self.unambiguous_text()
            .is_some_and(|(unambiguous, text)| unambiguous.has_sole_element(text, &xml::ElementPath::dotted(path)))
    }

    /// The same for an XML element with this name.
    pub fn element_is_unambiguous(&self, name: &str) -> bool {
        self.unambiguous_text()
            .is_some_and(|(unambiguous, text)| unambiguous.has_sole_element(text, &xml::ElementPath::name(name)))
    }

    fn unambiguous_text(&self) -> Option<(&UnambiguousKind, &[u8])> {
        let [BodyText { bytes, .. }] = &self.texts[..] else { return None };
        self.unambiguous.as_ref().filter(|_| self.is_fully_read).map(|unambiguous| (unambiguous, &bytes[..]))
    }

    /// Adds a body with the formats that it is read in. Returns whether no application can read it in another format.
    fn add(&mut self, content_type: &ContentType, body: Bytes) -> bool {
        let sniffed = SniffedKind::of(&body);
        let json = content_type.kinds.json || sniffed == SniffedKind::Json;
        let xml = content_type.kinds.xml || sniffed == SniffedKind::Xml;
        let multipart = content_type.kinds.multipart || sniffed == SniffedKind::Multipart;
        let transcoded = if json || xml { utf16::transcode(&body) } else { None };
        let text = transcoded.as_deref().unwrap_or(&body);
        let is_json = json && json::well_formed(text) != WellFormed::No;
        let is_xml = xml
            && xml::is_well_formed(text)
            && xml::declared_encoding(text).is_none_or(|name| is_plain_charset(name) || transcoded.is_some());
        let scan = multipart.then(|| multipart::scan(&body, &content_type.boundaries));
        let is_multipart = sniffed == SniffedKind::Multipart && scan.is_some_and(|scan| scan.has_parts);

        // A body that has its declared format has no other; any other body is read in every format.
        let settled = match content_type.kinds {
            ONLY_JSON => is_json && sniffed == SniffedKind::Json,
            ONLY_XML => is_xml && sniffed == SniffedKind::Xml,
            ONLY_MULTIPART => is_multipart,
            _ => false,
        };
        // No application reads two of these four formats from one body. Under another `Content-Type` it reads the
        // format that the body has, or nothing.
        let is_something = is_multipart
            || (is_json && sniffed == SniffedKind::Json)
            || (is_xml && sniffed == SniffedKind::Xml)
            || urlencoded::is_strict(&body);
        let understood = is_something
            || match content_type.kinds {
                ONLY_JSON => is_json,
                ONLY_XML => is_xml,
                ONLY_MULTIPART => sniffed == SniffedKind::Multipart && body.len() <= MAX_EMPTY_MULTIPART,
                _ => content_type.is_known && !matches!(sniffed, SniffedKind::Json | SniffedKind::Xml),
            };
        if let Some(bytes) = transcoded {
            self.texts.push(BodyText { bytes: bytes.into(), kinds: BodyKinds { json, xml, ..BodyKinds::default() } });
        } else if xml && str::from_utf8(&body).is_err() {
            // A character set of one byte per letter, which the text or its `Content-Type` may declare.
            let letters: String = body.iter().copied().map(char::from).collect();
            self.texts.push(BodyText { bytes: letters.into(), kinds: ONLY_XML });
        }
        self.texts.push(BodyText { bytes: body, kinds: BodyKinds { urlencoded: !settled, multipart, json, xml } });
        understood && scan.is_none_or(|scan| scan.understood)
    }
}

/// Fields hold passwords, so only the number of bodies is shown.
impl fmt::Debug for BodyFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyFields")
            .field("texts", &self.texts.len())
            .field("is_fully_read", &self.is_fully_read)
            .finish_non_exhaustive()
    }
}

/// The format that the first letters of a body suggest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SniffedKind {
    Json,
    Xml,
    Multipart,
    Other,
}

impl SniffedKind {
    fn of(body: &[u8]) -> Self {
        // UTF-16 has NULs between letters, and a byte order mark before them.
        let letter = body.iter().position(|byte| *byte > b' ' && !matches!(byte, 0xef | 0xbb | 0xbf | 0xfe | 0xff));
        match body.get(letter.unwrap_or(body.len())..) {
            Some([b'{' | b'[', ..]) => Self::Json,
            Some([b'<', ..]) => Self::Xml,
            Some([b'-', b'-', ..]) => Self::Multipart,
            _ => Self::Other,
        }
    }
}

const ONLY_JSON: BodyKinds = BodyKinds { urlencoded: false, multipart: false, json: true, xml: false };

const ONLY_XML: BodyKinds = BodyKinds { urlencoded: false, multipart: false, json: false, xml: true };

const ONLY_MULTIPART: BodyKinds = BodyKinds { urlencoded: false, multipart: true, json: false, xml: false };

/// In bytes: a multipart body without parts is only its last boundary.
const MAX_EMPTY_MULTIPART: usize = 128;

static NO_FIELDS: BodyFields = BodyFields::none();

#[cfg(test)]
mod tests;
