//! Scalars of a JSON body by their dotted paths. No text is an error: what is not JSON is skipped and reported.

use std::borrow::Cow;

use super::tokens::Bracket;
use super::tokens::JsonToken;
use super::tokens::JsonTokens;
use crate::request::name::is_same_but_for_case;
use crate::request::nul;
use crate::request::percent;

/// Whether a text is JSON from its first to its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WellFormed {
    Yes,
    /// It is JSON so far, but ends before its last bracket.
    CutShort,
    No,
}

/// Every scalar at a dotted path, in order. Array elements are named by their index. Names are compared without case,
/// as many libraries do, and a repeated name yields every value.
///
/// A number in an unusual spelling is yielded as sent and in the usual spelling. `null`, objects and arrays yield the
/// empty value, also beside a scalar at the same path, because applications differ about which one they read.
pub(crate) fn values<'t>(text: &'t [u8], path: &str) -> Vec<Cow<'t, str>> {
    let mut values = Vec::new();
    let mut hidden = false;
    scan(text, &mut |at, leaf| {
        // Case folding makes a name at most three times shorter.
        if at.len() > 3 * path.len() || values.len() >= MAX_VALUES || !is_same_but_for_case(at, path) {
            return;
        }
        match leaf {
            JsonLeaf::Text(text) => values.push(text),
            JsonLeaf::Number(text) => {
                values.extend(usual_spelling(text).map(Cow::Owned));
                values.push(Cow::Borrowed(text));
            }
            JsonLeaf::Other => hidden = true,
        }
    });
    if hidden {
        values.push(Cow::Borrowed(""));
    }
    values
}

/// Whether a text is JSON.
pub(crate) fn well_formed(text: &[u8]) -> WellFormed {
    scan(text, &mut |_, _| {})
}

enum JsonLeaf<'t> {
    Text(Cow<'t, str>),
    Number(&'t str),
    Other,
}

/// What comes next inside a bracket.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Expected {
    Name,
    Colon,
    Value,
    Comma,
}

struct OpenBracket {
    bracket: Bracket,
    next: Expected,
    /// The length of the path outside this bracket.
    base: usize,
    index: usize,
}

fn scan<'t>(text: &'t [u8], found: &mut dyn FnMut(&str, JsonLeaf<'t>)) -> WellFormed {
    let mut tokens = JsonTokens::new(text);
    let mut stack: Vec<OpenBracket> = Vec::new();
    let mut path = String::new();
    let mut odd = false;
    let mut documents = 0;
    while let Some(token) = tokens.next() {
        let Some(frame) = stack.last_mut() else {
            documents += 1;
            match token {
                JsonToken::Open(bracket) => stack.push(OpenBracket::new(bracket, 0)),
                JsonToken::Quoted(_) => {}
                JsonToken::Bare(word) => _ = bare(word, &mut odd),
                _ => odd = true,
            }
            continue;
        };
        // A name, or a value without a name: a comma or a colon is missing.
        if frame.bracket == Bracket::Object && frame.next != Expected::Value {
            match token {
                JsonToken::Quoted(name) => {
                    odd |= frame.next != Expected::Name;
                    frame.name(&mut path, &name);
                    continue;
                }
                JsonToken::Bare(name) => {
                    odd = true;
                    frame.name(&mut path, &percent::text(Cow::Borrowed(name)));
                    continue;
                }
                _ => {}
            }
        }
        match token {
            JsonToken::Colon => {
                odd |= frame.next != Expected::Colon;
                frame.next = if frame.bracket == Bracket::Object { Expected::Value } else { frame.next };
            }
            JsonToken::Comma => {
                odd |= frame.next != Expected::Comma;
                frame.next = if frame.bracket == Bracket::Object { Expected::Name } else { Expected::Value };
            }
            JsonToken::Close(bracket) if bracket == frame.bracket => {
                odd |= matches!(frame.next, Expected::Colon)
                    || (bracket == Bracket::Object && frame.next == Expected::Value);
                path.truncate(frame.base);
                stack.pop();
            }
            JsonToken::Close(_) => odd = true,
            JsonToken::Open(bracket) => {
                odd |= frame.next != Expected::Value;
                frame.element(&mut path);
                found(&path, JsonLeaf::Other);
                if stack.len() >= MAX_DEPTH {
                    return WellFormed::No;
                }
                stack.push(OpenBracket::new(bracket, path.len()));
            }
            JsonToken::Quoted(text) => {
                odd |= frame.next != Expected::Value;
                frame.element(&mut path);
                found(&path, JsonLeaf::Text(text));
            }
            JsonToken::Bare(word) => {
                odd |= frame.next != Expected::Value;
                frame.element(&mut path);
                found(&path, bare(word, &mut odd));
            }
        }
    }
    if odd || tokens.odd || documents != 1 {
        WellFormed::No
    } else if tokens.cut_short || !stack.is_empty() {
        WellFormed::CutShort
    } else {
        WellFormed::Yes
    }
}

impl OpenBracket {
    fn new(bracket: Bracket, base: usize) -> Self {
        let next = if bracket == Bracket::Object { Expected::Name } else { Expected::Value };
        Self { bracket, next, base, index: 0 }
    }

    fn name(&mut self, path: &mut String, name: &str) {
        path.truncate(self.base);
        if !path.is_empty() {
            path.push('.');
        }
        // As the name of a form field, it ends at a NUL in applications whose texts end at a NUL.
        path.push_str(nul::before(name));
        self.next = Expected::Colon;
    }

    /// A value begins; in an array its name is its index.
    fn element(&mut self, path: &mut String) {
        if self.bracket == Bracket::Array {
            let index = self.index;
            self.name(path, itoa::Buffer::new().format(index));
            self.index += 1;
        }
        self.next = Expected::Comma;
    }
}

fn bare<'t>(word: &'t [u8], odd: &mut bool) -> JsonLeaf<'t> {
    match word {
        b"null" => JsonLeaf::Other,
        b"true" | b"false" => JsonLeaf::Text(percent::text(Cow::Borrowed(word))),
        _ => match std::str::from_utf8(word) {
            Ok(number) if number.parse::<f64>().is_ok_and(f64::is_finite) => JsonLeaf::Number(number),
            _ => {
                *odd = true;
                JsonLeaf::Text(percent::text(Cow::Borrowed(word)))
            }
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
