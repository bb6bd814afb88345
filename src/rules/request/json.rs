//! Reads JSON bodies as lenient applications do.

use std::borrow::Cow;

use crate::rules::request::text::is_same_but_for_case;
use crate::rules::request::{text, urlencoded};

// Scalars of a JSON body by their dotted paths. No text is an error: text that is not JSON is skipped.

/// Deeper than honest documents, and than most libraries read.
const MAX_DEPTH: usize = 128;

/// Far more values than a key takes; a request with fewer than this is refused already.
pub(super) const MAX_VALUES: usize = 64;

/// Every scalar at a dotted path, in order. Array elements are named by their index. Names are compared without case,
/// as many libraries do, and a repeated name yields every value.
///
/// A number in an unusual spelling is yielded as sent and in the usual spelling. `null`, objects and arrays yield the
/// empty value, also beside a scalar at the same path, because applications differ about which one they read.
pub(crate) fn values<'t>(text: &'t [u8], path: &str) -> Vec<Cow<'t, str>> {
    let mut values = Vec::new();
    let mut hidden = false;
    let mut add = |value: Cow<'t, str>| {
        if values.len() < MAX_VALUES && !values.contains(&value) {
            values.push(value);
        }
    };
    scan(text, &mut |piece| {
        let JsonPiece::Leaf(at, leaf) = piece else { return };
        // Case folding makes a name at most three times shorter.
        if at.len() > 3 * path.len() || !is_same_but_for_case(at, path) {
            return;
        }
        match leaf {
            JsonLeaf::Text(text) | JsonLeaf::Word(text) => add(text),
            JsonLeaf::Number(text) => {
                usual_spelling(text).map(Cow::Owned).into_iter().for_each(&mut add);
                add(Cow::Borrowed(text));
            }
            JsonLeaf::Null | JsonLeaf::Bracket => hidden = true,
        }
    });
    if hidden {
        values.push(Cow::Borrowed(""));
    }
    values
}

/// A piece of the text as a reader sees it.
pub(crate) enum JsonPiece<'a, 't> {
    /// A name in the object at a path.
    Name { outside: &'a str, name: &'a str },
    /// An element of the list at a path.
    Element { outside: &'a str },
    /// The value at a path.
    Leaf(&'a str, JsonLeaf<'t>),
}

pub(crate) enum JsonLeaf<'t> {
    Text(Cow<'t, str>),
    Number(&'t str),
    /// `true`, `false`, or a word that is no JSON.
    Word(Cow<'t, str>),
    Null,
    /// An object or a list.
    Bracket,
}

/// The next piece inside an object.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Expected {
    Name,
    Value,
    /// A colon, a comma, or the end.
    Other,
}

struct OpenBracket {
    bracket: Bracket,
    next: Expected,
    /// The length of the path outside this bracket.
    base: usize,
    index: usize,
}

/// Reads a text as far as it is anything like JSON.
pub(crate) fn scan<'t>(text: &'t [u8], found: &mut dyn FnMut(JsonPiece<'_, 't>)) {
    let mut tokens = JsonTokens::new(text);
    let mut stack: Vec<OpenBracket> = Vec::new();
    let mut path = String::new();
    loop {
        let Some(frame) = stack.last_mut() else {
            let Some(bracket) = tokens.next_document() else { return };
            stack.push(OpenBracket::new(bracket, 0));
            continue;
        };
        let Some(token) = tokens.next() else { return };
        // A name, or a value without a name: a comma or a colon is missing.
        if frame.bracket == Bracket::Object && frame.next != Expected::Value {
            match token {
                JsonToken::Quoted(name) => {
                    frame.name(&mut path, &name, found);
                    continue;
                }
                JsonToken::Bare(name) => {
                    frame.name(&mut path, &urlencoded::text(Cow::Borrowed(name)), found);
                    continue;
                }
                _ => {}
            }
        }
        match token {
            JsonToken::Colon if frame.bracket == Bracket::Object => frame.next = Expected::Value,
            JsonToken::Comma if frame.bracket == Bracket::Object => frame.next = Expected::Name,
            JsonToken::Close(bracket) if bracket == frame.bracket => {
                path.truncate(frame.base);
                stack.pop();
            }
            JsonToken::Colon | JsonToken::Comma | JsonToken::Close(_) => {}
            JsonToken::Open(bracket) => {
                frame.value(&mut path, found);
                found(JsonPiece::Leaf(&path, JsonLeaf::Bracket));
                if stack.len() >= MAX_DEPTH {
                    return;
                }
                stack.push(OpenBracket::new(bracket, path.len()));
            }
            JsonToken::Quoted(text) => {
                frame.value(&mut path, found);
                found(JsonPiece::Leaf(&path, JsonLeaf::Text(text)));
            }
            JsonToken::Bare(word) => {
                frame.value(&mut path, found);
                found(JsonPiece::Leaf(&path, bare(word)));
            }
        }
    }
}

impl OpenBracket {
    fn new(bracket: Bracket, base: usize) -> Self {
        let next = if bracket == Bracket::Object { Expected::Name } else { Expected::Value };
        Self { bracket, next, base, index: 0 }
    }

    /// A name of an object.
    fn name<'t>(&mut self, path: &mut String, name: &str, found: &mut dyn FnMut(JsonPiece<'_, 't>)) {
        path.truncate(self.base);
        found(JsonPiece::Name { outside: path, name });
        self.push(path, name);
        self.next = Expected::Other;
    }

    /// A value begins; in a list its name is its index.
    fn value<'t>(&mut self, path: &mut String, found: &mut dyn FnMut(JsonPiece<'_, 't>)) {
        if self.bracket == Bracket::Array {
            path.truncate(self.base);
            found(JsonPiece::Element { outside: path });
            let index = self.index;
            self.push(path, itoa::Buffer::new().format(index));
            self.index += 1;
        } else {
            self.next = Expected::Other;
        }
    }

    fn push(&self, path: &mut String, name: &str) {
        if self.base > 0 {
            path.push('.');
        }
        // As the name of a form field, it ends at a NUL in applications whose texts end at a NUL.
        path.push_str(text::before(name));
    }
}

fn bare(word: &[u8]) -> JsonLeaf<'_> {
    match word {
        b"null" => JsonLeaf::Null,
        _ => match std::str::from_utf8(word) {
            Ok(number) if number.parse::<f64>().is_ok_and(f64::is_finite) => JsonLeaf::Number(number),
            _ => JsonLeaf::Word(urlencoded::text(Cow::Borrowed(word))),
        },
    }
}

/// The usual spelling of a number: `100` for `1e2` and `100.0`. `None` for a number that has it.
fn usual_spelling(number: &str) -> Option<String> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'))
        && number != "-0"
    {
        return None;
    }
    // Adding zero makes negative zero positive.
    let usual = (number.parse::<f64>().ok()? + 0.0).to_string();
    (usual != number).then_some(usual)
}

// Splits JSON into brackets, separators, strings and bare words.

pub(super) enum JsonToken<'t> {
    Open(Bracket),
    Close(Bracket),
    Colon,
    Comma,
    Quoted(Cow<'t, str>),
    Bare(&'t [u8]),
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Bracket {
    Object,
    Array,
}

/// Splits a text into tokens. No text is an error: text that is not JSON is read as lenient libraries read it.
pub(super) struct JsonTokens<'t> {
    rest: &'t [u8],
}

impl<'t> JsonTokens<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { rest: text }
    }

    pub(super) fn next(&mut self) -> Option<JsonToken<'t>> {
        self.skip();
        let (first, others) = self.rest.split_first()?;
        let token = match first {
            b'{' => JsonToken::Open(Bracket::Object),
            b'[' => JsonToken::Open(Bracket::Array),
            b'}' => JsonToken::Close(Bracket::Object),
            b']' => JsonToken::Close(Bracket::Array),
            b':' => JsonToken::Colon,
            b',' => JsonToken::Comma,
            b'"' | b'\'' => {
                self.rest = others;
                return self.quoted(*first).map(JsonToken::Quoted);
            }
            _ => {
                let end = self.rest.iter().position(|byte| *byte <= b' ' || b"{}[]:,\"'".contains(byte));
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                return Some(JsonToken::Bare(word));
            }
        };
        self.rest = others;
        Some(token)
    }

    /// The next object or list. Text before it is skipped, as some libraries do.
    pub(super) fn next_document(&mut self) -> Option<Bracket> {
        loop {
            self.skip();
            let (first, others) = self.rest.split_first()?;
            self.rest = others;
            match first {
                b'{' => return Some(Bracket::Object),
                b'[' => return Some(Bracket::Array),
                _ => {}
            }
        }
    }

    /// Skips blanks, byte order marks and comments, which some libraries allow.
    fn skip(&mut self) {
        loop {
            let end = match self.rest {
                [0..=b' ', ..] => 1,
                [0xef, 0xbb, 0xbf, ..] => 3,
                [b'/', b'/', ..] | [b'#', ..] => memchr::memchr2(b'\n', b'\r', self.rest).unwrap_or(self.rest.len()),
                [b'/', b'*', body @ ..] => memchr::memmem::find(body, b"*/").map_or(self.rest.len(), |end| end + 4),
                _ => return,
            };
            self.rest = &self.rest[end..];
        }
    }

    /// The rest of a string after its opening quote. `None` when the text ends before its closing quote.
    fn quoted(&mut self, quote: u8) -> Option<Cow<'t, str>> {
        let text = self.rest;
        let Some(end) = memchr::memchr2(quote, b'\\', text) else { return self.cut() };
        if text[end] == quote {
            self.rest = &text[end + 1..];
            return Some(urlencoded::text(Cow::Borrowed(&text[..end])));
        }
        let mut plain = text[..end].to_vec();
        let mut rest = &text[end..];
        loop {
            let Some((first, others)) = rest.split_first() else { return self.cut() };
            rest = others;
            if *first == quote {
                self.rest = rest;
                return Some(urlencoded::text(Cow::Owned(plain)));
            }
            if *first != b'\\' {
                plain.push(*first);
                continue;
            }
            let Some((escape, others)) = rest.split_first() else { return self.cut() };
            rest = others;
            plain.push(match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                b'u' => {
                    let char = code_point(&mut rest).unwrap_or(char::REPLACEMENT_CHARACTER);
                    plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                other => *other,
            });
        }
    }

    fn cut<T>(&mut self) -> Option<T> {
        self.rest = &[];
        None
    }
}

/// The character after `\u`: four digits, or twice four for a surrogate pair. Takes the digits off `rest`; `None` when
/// they stand for no character.
fn code_point(rest: &mut &[u8]) -> Option<char> {
    let first = code_unit(rest)?;
    *rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    let second = rest.strip_prefix(b"\\u")?;
    let low = code_unit(second).filter(|low| (0xdc00..0xe000).contains(low))?;
    *rest = &second[4..];
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00))
}

fn code_unit(digits: &[u8]) -> Option<u32> {
    digits.get(..4)?.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use serde_json::Value;

    use super::{MAX_VALUES, values};
    #[cfg(test)]
    use crate::words::corpus;

    /// This reader finds every value that a strict library finds, and values are bounded in number and size.
    pub fn check(bytes: &[u8]) {
        if let Ok(Value::Object(fields)) = serde_json::from_slice(bytes)
            && let Some(Value::String(text)) = fields.get("username")
        {
            let found = values(bytes, "username");
            let before_nul = |value: &str| value.split('\0').next().unwrap_or_default().to_owned();
            let is_found = found.iter().any(|value| before_nul(value) == before_nul(text));
            assert!(is_found || found.len() >= MAX_VALUES, "{text:?} is not among {found:?}");
        }
        for path in ["username", "user.name", "0", ""] {
            let values = values(bytes, path);
            assert!(values.len() <= 2 * MAX_VALUES + 1, "{} values", values.len());
            let longest = values.iter().map(|value| value.len()).max().unwrap_or_default();
            // A byte that is not UTF-8 becomes a character of three, and a number in the usual spelling has 400 digits at
            // most.
            assert!(longest <= 3 * bytes.len() + 400, "{longest} bytes of {}", bytes.len());
        }
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("json", check);
    }
}

#[cfg(test)]
mod tests;
