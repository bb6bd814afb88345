//! Scalars of a JSON body by their dotted paths. No text is an error: what is not JSON is skipped.

use std::borrow::Cow;

use super::tokens::Bracket;
use super::tokens::JsonToken;
use super::tokens::JsonTokens;
use crate::request::name::is_same_but_for_case;
use crate::request::nul;
use crate::request::percent;

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

/// What a reader meets in a text.
pub(crate) enum JsonPiece<'a, 't> {
    /// A name in the object at a path.
    Name { outside: &'a str, name: &'a str },
    /// An element of the list at a path.
    Element { outside: &'a str },
    /// What stands at a path.
    Leaf(&'a str, JsonLeaf<'t>),
}

pub(crate) enum JsonLeaf<'t> {
    Text(Cow<'t, str>),
    Number(&'t str),
    /// `true`, `false`, or what is no JSON.
    Word(Cow<'t, str>),
    Null,
    /// An object or a list.
    Bracket,
}

/// What comes next inside an object.
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
                    frame.name(&mut path, &percent::text(Cow::Borrowed(name)), found);
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
        path.push_str(nul::before(name));
    }
}

fn bare(word: &[u8]) -> JsonLeaf<'_> {
    match word {
        b"null" => JsonLeaf::Null,
        _ => match std::str::from_utf8(word) {
            Ok(number) if number.parse::<f64>().is_ok_and(f64::is_finite) => JsonLeaf::Number(number),
            _ => JsonLeaf::Word(percent::text(Cow::Borrowed(word))),
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

/// Deeper than honest documents, and than most libraries read.
const MAX_DEPTH: usize = 128;

/// Far more values than a key takes; a request with fewer than this is refused already.
pub(super) const MAX_VALUES: usize = 64;
