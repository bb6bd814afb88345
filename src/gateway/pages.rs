//! Pages with marks, and those that operators put in the place of the gateway's own.

use std::collections::BTreeMap;

use crate::gateway::languages::Language;

/// A page with marks such as `{{title}}`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template<M> {
    parts: Vec<TemplatePart<M>>,
    length: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum TemplatePart<M> {
    Text(Box<str>),
    Mark(M),
}

/// Why a text is no template: the mark, and the byte at which it begins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidMark {
    /// `None`: it has no end.
    pub name: Option<String>,
    pub at: usize,
}

impl<M> Template<M> {
    /// `mark` knows the marks by their names.
    pub fn parse<'t>(text: &'t str, mark: impl Fn(&'t str) -> Option<M>) -> Result<Self, InvalidMark> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, marked)) = rest.split_once("{{") {
            let at = text.len() - marked.len() - 2;
            let (name, after) = marked.split_once("}}").ok_or(InvalidMark { name: None, at })?;
            let name = name.trim();
            parts.push(TemplatePart::Text(before.into()));
            parts.push(TemplatePart::Mark(mark(name).ok_or_else(|| InvalidMark { name: Some(name.to_owned()), at })?));
            rest = after;
        }
        parts.push(TemplatePart::Text(rest.into()));
        Ok(Self { parts, length: text.len() })
    }

    /// Appends the page; `write` writes the text for each mark.
    pub fn fill(&self, html: &mut Vec<u8>, mut write: impl FnMut(&M, &mut Vec<u8>)) {
        html.reserve(self.length + 512);
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => html.extend_from_slice(text.as_bytes()),
                TemplatePart::Mark(mark) => write(mark, html),
            }
        }
    }
}

/// Writes text as HTML, between tags or within an attribute.
pub fn escape_html(html: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'<' => html.extend_from_slice(b"&lt;"),
            b'>' => html.extend_from_slice(b"&gt;"),
            b'&' => html.extend_from_slice(b"&amp;"),
            b'"' => html.extend_from_slice(b"&quot;"),
            b'\'' => html.extend_from_slice(b"&#39;"),
            byte => html.push(*byte),
        }
    }
}

// The pages of operators.

/// A mark in an operator's page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placeholder {
    /// What happened and what the person can do, in the language of the reader.
    Sentence,
    /// For how long to wait; empty where that is not known, or where waiting does not help.
    Seconds,
    Status,
    RequestId,
}

impl Placeholder {
    pub const NAMES: [&str; 4] = ["sentence", "seconds", "status", "request_id"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "sentence" => Some(Self::Sentence),
            "seconds" => Some(Self::Seconds),
            "status" => Some(Self::Status),
            "request_id" => Some(Self::RequestId),
            _ => None,
        }
    }
}

/// When an operator's page is sent.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PageKind {
    /// A limit, a ban or a list denies the request.
    Denied,
    /// The request was refused before any rule was applied, or the application failed.
    Error,
}

/// The pages that operators put in the place of the gateway's own.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OperatorPages(BTreeMap<(PageKind, Option<Language>), Template<Placeholder>>);

impl OperatorPages {
    /// Adds a page for readers of this language, or for all that have no page of their language.
    pub fn add(&mut self, kind: PageKind, language: Option<Language>, page: Template<Placeholder>) {
        self.0.insert((kind, language), page);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The page for readers of this language, and the language that it is known to be in. `None`: the gateway's own.
    pub fn find(&self, kind: PageKind, language: Language) -> Option<(&Template<Placeholder>, Option<Language>)> {
        let of = |language| Some((self.0.get(&(kind, language))?, language));
        of(Some(language)).or_else(|| of(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_knows_its_marks_and_where_a_wrong_one_stands() {
        let parse = |text| Template::parse(text, Placeholder::from_name);
        let mut html = Vec::new();
        let filled = parse("a {{status}}{{ seconds }} }} b").expect("a template");
        filled.fill(&mut html, |placeholder, html| html.extend_from_slice(format!("{placeholder:?}").as_bytes()));
        assert_eq!(html, b"a StatusSeconds }} b");
        assert_eq!(parse("ab {{ minutes }}"), Err(InvalidMark { name: Some("minutes".to_owned()), at: 3 }));
        assert_eq!(parse("{{status}} {{status"), Err(InvalidMark { name: None, at: 11 }));
        for name in Placeholder::NAMES {
            assert!(Placeholder::from_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn text_in_a_page_is_escaped() {
        let mut html = Vec::new();
        escape_html(&mut html, "<a href=\"x\">'é' & b</a>".as_bytes());
        assert_eq!(String::from_utf8_lossy(&html), "&lt;a href=&quot;x&quot;&gt;&#39;é&#39; &amp; b&lt;/a&gt;");
    }
}
