//! Reads XML bodies as lenient applications do.
//!
//! No text is an error: text that is not XML is read as far as possible and reported.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use smallvec::SmallVec;

use crate::rules::request::text::is_same_but_for_case;
use crate::rules::request::urlencoded;

// The texts of the elements at a path.

/// Far more different values than a key takes: a request with fewer is refused already.
pub(super) const MAX_VALUES: usize = 64;

/// In bytes: longer than any name.
const MAX_LENGTH: usize = 8192;

/// The value at a path.
#[derive(Debug, Default)]
pub(crate) struct ElementTexts {
    /// How many elements stand there.
    pub(crate) elements: usize,
    /// Every different text that some application may read for them, in order. An element with child elements yields the
    /// text of each child and all texts together.
    pub(crate) values: Vec<String>,
    /// A text that stands there more than once.
    pub(crate) repeated: Option<String>,
    /// Whether some application may read another text: an element has several readings, an attribute has the name, or
    /// there are too many texts.
    pub(crate) has_other_readings: bool,
}

/// The texts of the elements at a path.
pub(crate) fn texts(text: &[u8], path: &ElementPath<'_>) -> ElementTexts {
    let mut finder = TextFinder {
        path: &path.0,
        stack: vec![OpenElement::default()],
        text: String::new(),
        found: ElementTexts::default(),
    };
    walk(&urlencoded::text(Cow::Borrowed(text)), &mut |piece| match piece {
        XmlPiece::Open(name) => finder.open(name),
        XmlPiece::Attribute(name) => finder.attribute(name),
        XmlPiece::Text(text) => finder.add(text),
        XmlPiece::Break => finder.cut(),
        XmlPiece::Close => finder.close(),
    });
    finder.found
}

/// Every different text that some application may read for the elements at a path.
pub(super) fn values(text: &[u8], path: &ElementPath<'_>) -> Vec<String> {
    texts(text, path).values
}

/// Whether the text is an XML-RPC call of `system.multicall`.
pub(crate) fn is_multicall(text: &[u8]) -> bool {
    let method = ElementPath::nested(&["methodCall", "methodName"]);
    values(text, &method).iter().any(|name| name.trim().eq_ignore_ascii_case("system.multicall"))
}

/// Types of XML-RPC whose values are more than a text or a whole number.
const NO_PLAIN_VALUES: [&str; 6] = ["base64", "boolean", "double", "dateTime.iso8601", "struct", "array"];

/// An open element, and its text so far.
#[derive(Default)]
struct OpenElement {
    name: String,
    /// How many siblings of the same name come before it.
    nth: usize,
    /// For each step of the path, how many children of that name were seen.
    seen: SmallVec<[usize; 4]>,
    /// Where its text begins.
    start: usize,
    has_elements: bool,
    /// Only elements at the path have this.
    found: Option<Box<ElementText>>,
}

#[derive(Default)]
struct ElementText {
    /// The text of the element itself, without its children.
    own: String,
    /// The end of the first piece of that text, once it has ended.
    first: Option<usize>,
    /// The texts of descendants that have no children.
    leaves: Vec<String>,
}

struct TextFinder<'p> {
    path: &'p [PathStep<'p>],
    /// The first entry is the document itself.
    stack: Vec<OpenElement>,
    /// All text so far.
    text: String,
    found: ElementTexts,
}

impl TextFinder<'_> {
    fn open(&mut self, name: &str) {
        self.cut();
        let mut frame = OpenElement { name: name.to_owned(), start: self.text.len(), ..OpenElement::default() };
        let around = self.stack.last_mut().expect("each element is in the document");
        around.has_elements = true;
        around.seen.resize(self.path.len(), 0);
        for (step, seen) in self.path.iter().zip(&mut around.seen) {
            if step.nth.is_some() && is_same_but_for_case(name, step.name) {
                frame.nth = *seen;
                *seen += 1;
            }
        }
        self.stack.push(frame);
        if self.is_at_path() {
            self.top().found = Some(Box::default());
        }
        self.found.has_other_readings |= self.is_no_plain_value(name);
    }

    /// Whether an element makes the value of an XML-RPC call no text: it is encoded, has a type of many spellings, or is made
    /// of several.
    fn is_no_plain_value(&self, name: &str) -> bool {
        let is_in_call = self.stack.get(1).is_some_and(|root| root.name.eq_ignore_ascii_case("methodCall"));
        is_in_call
            && NO_PLAIN_VALUES.iter().any(|kind| name.eq_ignore_ascii_case(kind))
            && self.stack.iter().any(|frame| frame.found.is_some())
    }

    /// Some libraries read an attribute like a child element.
    fn attribute(&mut self, name: &str) {
        self.found.has_other_readings |= self.path.last().is_some_and(|step| is_same_but_for_case(name, step.name));
    }

    fn is_at_path(&self) -> bool {
        let elements = self.stack[1..].iter().rev();
        self.stack.len() > self.path.len()
            && self.path.iter().rev().zip(elements).all(|(step, frame)| {
                is_same_but_for_case(&frame.name, step.name) && step.nth.is_none_or(|nth| nth == frame.nth)
            })
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        if let Some(found) = &mut self.top().found {
            found.own.push_str(text);
        }
    }

    /// Something else comes between the text so far and the text that follows.
    fn cut(&mut self) {
        if let Some(found) = &mut self.top().found
            && !found.own.trim().is_empty()
        {
            found.first.get_or_insert(found.own.len());
        }
    }

    fn close(&mut self) {
        let Some(frame) = self.stack.pop() else { return };
        let all = beginning(&self.text[frame.start..]).to_owned();
        match frame.found {
            Some(found) => self.conclude(all, frame.has_elements, *found),
            None if frame.has_elements || all.trim().is_empty() => {}
            None => {
                let around = self.stack.iter_mut().rev().find_map(|frame| frame.found.as_mut());
                let Some(around) = around else { return };
                if around.leaves.contains(&all) {
                    self.found.repeated = Some(all);
                } else if around.leaves.len() <= MAX_VALUES {
                    around.leaves.push(all);
                }
            }
        }
    }

    /// An element at the path has ended.
    fn conclude(&mut self, all: String, has_elements: bool, found: ElementText) {
        let ElementText { own, first, leaves } = found;
        let mut readings = vec![all];
        let first = first.map_or("", |end| &own[..end]);
        let own = if has_elements { &own[..] } else { "" };
        readings.extend(
            [own, first].into_iter().filter(|text| !text.trim().is_empty()).map(|text| beginning(text).to_owned()),
        );
        let is_known = |text: &String| leaves.iter().any(|leaf| leaf.trim() == text.trim());
        readings.retain(|text| !is_known(text) && (leaves.is_empty() || !text.trim().is_empty()));
        readings.dedup_by(|one, other| one.trim() == other.trim());
        let texts = readings.into_iter().chain(leaves);
        self.found.elements += 1;
        let mut count = 0;
        for text in texts {
            count += 1;
            if self.found.values.contains(&text) {
                self.found.repeated = Some(text);
                continue;
            }
            if self.found.values.len() == MAX_VALUES {
                self.found.has_other_readings = true;
                return;
            }
            self.found.values.push(text);
        }
        self.found.has_other_readings |= count > 1;
    }

    fn top(&mut self) -> &mut OpenElement {
        self.stack.last_mut().expect("each element is in the document")
    }
}

fn beginning(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_LENGTH)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

// Paths of elements in an XML body.

/// A path of local names, from the outer element to the one whose text counts. Elements outside the path and prefixes
/// do not matter.
#[derive(Debug)]
pub(crate) struct ElementPath<'p>(pub(super) SmallVec<[PathStep<'p>; 4]>);

#[derive(Clone, Copy, Debug)]
pub(super) struct PathStep<'p> {
    pub(super) name: &'p str,
    /// The position among sibling elements with this name, from 0; `None`: all of them.
    pub(super) nth: Option<usize>,
}

impl<'p> ElementPath<'p> {
    /// `params.param.0.value`: names, and numbers that select among siblings.
    pub(crate) fn dotted(path: &'p str) -> Self {
        let mut steps: SmallVec<[PathStep<'p>; 4]> = SmallVec::new();
        for name in path.split('.') {
            match (steps.last_mut(), name.parse()) {
                (Some(step), Ok(nth)) if step.nth.is_none() => step.nth = Some(nth),
                _ => steps.push(PathStep { name, nth: None }),
            }
        }
        Self(steps)
    }

    /// Every element with this name.
    pub(crate) fn name(name: &'p str) -> Self {
        Self::nested(&[name])
    }

    /// The path of these nested elements.
    pub(super) fn nested(names: &[&'p str]) -> Self {
        Self(names.iter().map(|&name| PathStep { name, nth: None }).collect())
    }
}

// Walks over an XML text with a lenient reader.

/// Deeper than honest documents, and than most libraries read.
pub(super) const MAX_DEPTH: usize = 128;

/// In bytes: a declaration is shorter.
const MAX_DECLARATION: usize = 256;

/// Whether a text is XML from its first to its last byte, and declares no entities.
pub(crate) fn is_well_formed(text: &[u8]) -> bool {
    walk(&urlencoded::text(Cow::Borrowed(text)), &mut |_| {})
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
pub(super) fn character(name: &str) -> Option<char> {
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

#[cfg(test)]
mod tests;
