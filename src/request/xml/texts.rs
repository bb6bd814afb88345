//! The texts of the elements at a path.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::element_path::ElementPath;
use super::element_path::PathStep;
use super::walk::XmlPiece;
use super::walk::walk;
use crate::request::name::is_same_but_for_case;
use crate::request::percent;

/// What stands at a path.
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
    walk(&percent::text(Cow::Borrowed(text)), &mut |piece| match piece {
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

/// Far more different values than a key takes: a request with fewer is refused already.
pub(super) const MAX_VALUES: usize = 64;

/// In bytes: longer than any name.
const MAX_LENGTH: usize = 8192;
