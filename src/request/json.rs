//! Scalars of a JSON body under their dotted paths. Nothing fails: what is not JSON is skipped, and said.

mod tokens;

use std::borrow::Cow;

use self::tokens::Bracket;
use self::tokens::Token;
use self::tokens::Tokens;
use super::name::is_same_but_for_case;
use super::nul;
use super::percent;

/// Whether a text was JSON from its first to its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WellFormed {
    Yes,
    /// As far as it goes: it ends before its last bracket.
    CutShort,
    No,
}

/// Every scalar at a dotted path, in order; elements of arrays have their index for a name. Letters of names count
/// without case, as many libraries read them, and repeated names yield every value.
///
/// Numbers not written in the usual way are yielded as sent and in the usual way. `null`, objects and arrays yield nothing,
/// but beside a scalar of the same path, where nobody knows which one is read, the empty value.
pub(crate) fn values<'t>(text: &'t [u8], path: &str) -> Vec<Cow<'t, str>> {
    let mut values = Vec::new();
    let mut hidden = false;
    scan(text, &mut |at, leaf| {
        // Folding case makes a name at most three times shorter.
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
    if hidden && !values.is_empty() {
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
    /// How much of the path belongs to what is around this bracket.
    base: usize,
    index: usize,
}

fn scan<'t>(text: &'t [u8], found: &mut dyn FnMut(&str, JsonLeaf<'t>)) -> WellFormed {
    let mut tokens = Tokens::new(text);
    let mut stack: Vec<OpenBracket> = Vec::new();
    let mut path = String::new();
    let mut odd = false;
    let mut documents = 0;
    while let Some(token) = tokens.next() {
        let Some(frame) = stack.last_mut() else {
            documents += 1;
            match token {
                Token::Open(bracket) => stack.push(OpenBracket::new(bracket, 0)),
                Token::Quoted(_) => {}
                Token::Bare(word) => _ = bare(word, &mut odd),
                _ => odd = true,
            }
            continue;
        };
        // A name, or a value without one: a comma or a colon was left out.
        if frame.bracket == Bracket::Object && frame.next != Expected::Value {
            match token {
                Token::Quoted(name) => {
                    odd |= frame.next != Expected::Name;
                    frame.name(&mut path, &name);
                    continue;
                }
                Token::Bare(name) => {
                    odd = true;
                    frame.name(&mut path, &percent::text(Cow::Borrowed(name)));
                    continue;
                }
                _ => {}
            }
        }
        match token {
            Token::Colon => {
                odd |= frame.next != Expected::Colon;
                frame.next = if frame.bracket == Bracket::Object { Expected::Value } else { frame.next };
            }
            Token::Comma => {
                odd |= frame.next != Expected::Comma;
                frame.next = if frame.bracket == Bracket::Object { Expected::Name } else { Expected::Value };
            }
            Token::Close(bracket) if bracket == frame.bracket => {
                odd |= matches!(frame.next, Expected::Colon)
                    || (bracket == Bracket::Object && frame.next == Expected::Value);
                path.truncate(frame.base);
                stack.pop();
            }
            Token::Close(_) => odd = true,
            Token::Open(bracket) => {
                odd |= frame.next != Expected::Value;
                frame.element(&mut path);
                found(&path, JsonLeaf::Other);
                if stack.len() >= MAX_DEPTH {
                    return WellFormed::No;
                }
                stack.push(OpenBracket::new(bracket, path.len()));
            }
            Token::Quoted(text) => {
                odd |= frame.next != Expected::Value;
                frame.element(&mut path);
                found(&path, JsonLeaf::Text(text));
            }
            Token::Bare(word) => {
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
        // As a name in a form, it ends there to those whose texts end there.
        path.push_str(nul::before(name));
        self.next = Expected::Colon;
    }

    /// A value begins: in an array it gets its index for a name.
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

/// `1e2` and `100.0` are 100. `None` for what is spelt the usual way.
fn usual_spelling(number: &str) -> Option<String> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'))
        && number != "-0"
    {
        return None;
    }
    // Adding zero makes a negative one positive.
    let usual = (number.parse::<f64>().ok()? + 0.0).to_string();
    (usual != number).then_some(usual)
}

/// Deeper than anything honest, and than most libraries go.
const MAX_DEPTH: usize = 128;

/// Far more than any key takes; whoever sends more is refused for less.
const MAX_VALUES: usize = 64;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
