//! Looks up fields in the start of a request body.
//!
//! The readers of bodies are our own, because a standard parser reads a body in one way, and a rule must see the value
//! in every way that some application may read it.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use smallvec::SmallVec;

use super::content_type::{BodyKinds, ContentType};
use super::not_understood::NotUnderstood;
use super::strict::body::StrictBody;
use super::strict::content_type::StrictContentType;
use super::{encoding, json, multipart, urlencoded, xml};
use crate::rules::request::text;
use crate::wire::head::Fields;

/// The fields of a body. They are looked up in the format that the body has and in the formats that its `Content-Type`
/// declares, with and without its declared encodings. The body is kept, without a copy where it is not encoded, and
/// read again for every lookup, so that the size of the body bounds the memory.
pub struct BodyFields {
    texts: Vec<BodyText>,
    boundaries: Vec<Vec<u8>>,
    /// The body as clients write bodies, or why it is none.
    strict: Result<StrictBody, NotUnderstood>,
}

/// A body, and the formats that it is read in.
struct BodyText {
    bytes: Bytes,
    kinds: BodyKinds,
}

impl BodyFields {
    /// No fields, for code that only reads the head.
    pub const NONE: &Self = &NO_FIELDS;

    /// No fields: for requests without a body, or with a body that no rule needs.
    pub const fn none() -> Self {
        Self { texts: Vec::new(), boundaries: Vec::new(), strict: Ok(StrictBody::EMPTY) }
    }

    /// Whether there is no body to look fields up in.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Reads the first bytes of a body as it came on the wire. `whole`: `start` is the whole body. Compressed bodies
    /// are decoded to at most `bound` bytes.
    pub fn read(head: &Fields, start: &Bytes, whole: bool, bound: usize) -> Self {
        if start.is_empty() {
            let strict = if whole { Ok(StrictBody::EMPTY) } else { Err(NotUnderstood::Unseen) };
            return Self { strict, ..Self::none() };
        }
        let content_type = ContentType::read(head);
        let decoded = encoding::decode(head, start, bound);
        let is_whole = decoded.whole && encoding::is_strict(head);
        // `Content-Encoding` may be wrong, so the body as it came is read as well.
        let is_decoded = !decoded.bodies.iter().any(|body| **body == **start);
        let bodies = decoded.bodies.into_iter().map(|body| match body {
            Cow::Borrowed(_) => start.clone(),
            Cow::Owned(body) => body.into(),
        });
        let bodies: SmallVec<[Bytes; 2]> = bodies.collect();
        let strict = match &bodies[..] {
            _ if !whole => Err(NotUnderstood::TooLong),
            [body] if is_whole => StrictContentType::read(head).and_then(|declared| StrictBody::read(declared, body)),
            _ => Err(NotUnderstood::Coding),
        };
        let mut fields = Self { strict, boundaries: content_type.boundaries, ..Self::none() };
        for body in bodies {
            fields.add(content_type.kinds, body);
        }
        if is_decoded {
            fields.add(content_type.kinds, start.clone());
        }
        fields
    }

    /// Why the body as a whole is not understood.
    pub fn not_understood(&self) -> Option<NotUnderstood> {
        self.strict.as_ref().err().copied()
    }

    /// Whether no application reads any field in the body.
    pub fn has_no_field(&self) -> bool {
        self.strict.as_ref().is_ok_and(StrictBody::has_no_field)
    }

    /// Whether the text of the body is there, in any format.
    pub(super) fn has_text(&self) -> bool {
        use NotUnderstood as No;
        !matches!(self.strict, Err(No::Unseen | No::TooLong | No::Coding | No::ContentType | No::Charset))
    }

    /// The texts of the body, with and without its encodings.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().map(|text| &text.bytes[..])
    }

    /// Every value that some application may read for the form field `name`, in a body that is urlencoded or multipart
    /// or declares to be. A name counts in every spelling that some application accepts.
    pub fn form<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        let urlencoded = self.texts.iter().filter(|text| text.kinds.urlencoded);
        let multipart = self.texts.iter().filter(|text| text.kinds.multipart);
        urlencoded.flat_map(move |text| urlencoded::values(&text.bytes, name)).chain(
            multipart
                .flat_map(move |text| multipart::values(&text.bytes, &self.boundaries, name))
                .flat_map(text::readings),
        )
    }

    /// Every scalar at a dotted path of a JSON body. Array elements are named by their index.
    pub fn json<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        let texts = self.texts.iter().filter(|text| text.kinds.json);
        texts.flat_map(move |text| json::values(&text.bytes, path)).flat_map(text::readings)
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
        let found = texts.map(move |text| xml::texts(&text.bytes, &path));
        // A value that occurs more than once is returned twice.
        found.flat_map(|found| found.values.into_iter().chain(found.repeated)).map(Cow::Owned).flat_map(text::readings)
    }

    /// Whether the body is an XML-RPC `system.multicall`: the application runs each call in it.
    pub fn is_multicall(&self) -> bool {
        self.texts.iter().filter(|text| text.kinds.xml).any(|text| xml::is_multicall(&text.bytes))
    }

    /// Whether [`BodyFields::form`] surely finds every value that some application reads.
    pub fn judge_form(&self, name: &str) -> Result<(), NotUnderstood> {
        self.strict()?.judge_form(name)
    }

    /// Judges a field of [`BodyFields::json`].
    pub fn judge_json(&self, path: &str) -> Result<(), NotUnderstood> {
        self.strict()?.judge_json(path)
    }

    /// Judges a field of [`BodyFields::xml`].
    pub fn judge_xml(&self, path: &str) -> Result<(), NotUnderstood> {
        self.strict()?.judge_element(&xml::ElementPath::dotted(path))
    }

    /// Judges a field of [`BodyFields::element`].
    pub fn judge_element(&self, name: &str) -> Result<(), NotUnderstood> {
        self.strict()?.judge_element(&xml::ElementPath::name(name))
    }

    /// Whether every application reads the form field alike: it occurs once, under exactly this name, in a body that
    /// is understood and has the format that it declares.
    pub fn form_is_sole(&self, name: &str) -> bool {
        self.strict().is_ok_and(|body| body.has_sole_field(name))
    }

    /// Whether a scalar at a dotted path of a JSON body has one value for every reader.
    pub fn json_is_sole(&self, path: &str) -> bool {
        self.strict().is_ok_and(|body| body.has_sole_scalar(path))
    }

    /// Whether an XML element at a dotted path has one value for every reader.
    pub fn xml_is_sole(&self, path: &str) -> bool {
        self.strict().is_ok_and(|body| body.has_sole_element(&xml::ElementPath::dotted(path)))
    }

    /// Whether an XML element with this name has one value for every reader.
    pub fn element_is_sole(&self, name: &str) -> bool {
        self.strict().is_ok_and(|body| body.has_sole_element(&xml::ElementPath::name(name)))
    }

    fn strict(&self) -> Result<&StrictBody, NotUnderstood> {
        self.strict.as_ref().map_err(|reason| *reason)
    }

    /// Adds a body with the formats that it is read in.
    fn add(&mut self, declared: BodyKinds, body: Bytes) {
        let sniffed = SniffedKind::of(&body);
        // Some libraries skip what stands before JSON.
        let hides_json = || self.strict.is_err() && memchr::memchr2(b'{', b'[', &body).is_some();
        let json = declared.json || sniffed == SniffedKind::Json || hides_json();
        let xml = declared.xml || sniffed == SniffedKind::Xml;
        let multipart = declared.multipart || sniffed == SniffedKind::Multipart;
        if let Some(bytes) = (json || xml).then(|| encoding::transcode(&body)).flatten() {
            self.texts.push(BodyText { bytes: bytes.into(), kinds: BodyKinds { json, xml, ..BodyKinds::default() } });
        } else if xml && str::from_utf8(&body).is_err() {
            // A character set of one byte per letter, which the text or its `Content-Type` may declare.
            let letters: String = body.iter().copied().map(char::from).collect();
            self.texts.push(BodyText { bytes: letters.into(), kinds: BodyKinds { xml: true, ..BodyKinds::default() } });
        }
        // A body that has its declared format has no other; any other body is read in every format.
        let urlencoded = !self.strict.as_ref().is_ok_and(StrictBody::is_settled);
        self.texts.push(BodyText { bytes: body, kinds: BodyKinds { urlencoded, multipart, json, xml } });
    }
}

/// Fields hold passwords, so only the number of bodies is shown.
impl fmt::Debug for BodyFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyFields")
            .field("texts", &self.texts.len())
            .field("not_understood", &self.not_understood())
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

static NO_FIELDS: BodyFields = BodyFields::none();

#[cfg(test)]
mod tests;
