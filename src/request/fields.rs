//! What the peeked start of a body says, by field name.

use std::borrow::Cow;

use http::HeaderMap;

/// The fields of a body: looked for in what the body is and in what it says it is.
#[derive(Debug)]
pub struct Fields {
    // of urlencoded and multipart bodies, in order
    form: Vec<(String, String)>,
    // scalars of JSON bodies under their dotted path, repeated ones kept
    json: Vec<(String, String)>,
    seen_whole: bool,
}

impl Fields {
    /// The fields of a request without a body, or of one whose body no rule asks about.
    pub fn none() -> Self {
        Self { form: Vec::new(), json: Vec::new(), seen_whole: true }
    }

    /// Reads the first bytes of a body as it came on the wire. `whole` says whether `start` is all of it;
    /// compressed bodies are decoded to at most `bound` bytes.
    pub fn read(_headers: &HeaderMap, _start: &[u8], _whole: bool, _bound: usize) -> Self {
        todo!()
    }

    /// Whether all of the body was read and understood: when not, a field may have been missed.
    pub fn seen_whole(&self) -> bool {
        self.seen_whole
    }

    /// Every value of a form field.
    pub fn form<'a>(&'a self, _name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        std::iter::empty()
    }

    /// Every scalar at a dotted path of a JSON body.
    pub fn json<'a>(&'a self, _path: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        std::iter::empty()
    }
}
