//! Markup and escapes that an application may drop from a name, or decode, before it looks for the account.

use std::iter;

use quick_xml::escape::resolve_html5_entity;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The texts that one step makes of a text, where it changes anything.
pub(super) fn steps(text: &str, found: &mut dyn FnMut(String)) {
    if text.contains('<') {
        found(without_tags(text));
        found(between(text, tag));
        found(between(text, script));
    }
    if text.contains('%') {
        found(between(text, |rest| octet(rest.as_bytes()).map(|_| 3)));
        found(with_octets(text));
        if !text.is_ascii() {
            // WordPress takes accents away first, and then octets.
            found(without_accents(text, false));
            found(without_accents(text, true));
        }
    }
    if text.contains('&') {
        if text.contains(['\n', '\r']) {
            // WordPress makes blanks of them, and then drops again.
            found(text.replace(['\n', '\r'], " "));
        }
        found(between(text, anything_to_semicolon));
        found(between(text, |rest| reference(rest).map(|(length, _)| length)));
        found(with_references(text));
    }
    if let Some((_, name)) = text.rsplit_once(':') {
        // A namespace, as in `User:Alice`.
        found(name.to_owned());
    }
}

/// Whether there is anything for these steps in a text.
pub(super) fn may_have_steps(text: &str) -> bool {
    text.contains(['<', '%', '&', ':'])
}

/// The text without the pieces at whose beginning `length` says how long they are.
fn between(text: &str, length: impl Fn(&str) -> Option<usize>) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = length(rest) {
            rest = &rest[length..];
        } else {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    kept
}

/// From `<` to the next `>`.
fn tag(rest: &str) -> Option<usize> {
    rest.starts_with('<').then(|| rest.find('>')).flatten().map(|end| end + 1)
}

/// The length of a script or a style with all it contains, as WordPress drops it.
fn script(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('<')?;
    let name = ["script", "style"].into_iter().find(|name| begins(after, name))?;
    let inside = rest.find('>')? + 1;
    let end = format!("</{name}>");
    let close = (inside..rest.len()).find(|&at| rest.get(at..).is_some_and(|rest| begins(rest, &end)))?;
    Some(close + end.len())
}

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// `&`, anything, and the first semicolon, as WordPress drops it.
fn anything_to_semicolon(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('&')?;
    let first = inside.chars().next().filter(|first| *first != '\n')?.len_utf8();
    let end = first + inside[first..].find([';', '\n'])?;
    inside[end..].starts_with(';').then_some(end + 2)
}

/// The length of a character reference, and what it stands for.
fn reference(rest: &str) -> Option<(usize, Option<String>)> {
    let inside = rest.strip_prefix('&')?;
    if let Some(number) = inside.strip_prefix('#') {
        let (digits, radix, before) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16, 3),
            None => (number, 10, 2),
        };
        let count = digits.find(|char: char| !char.is_digit(radix)).unwrap_or(digits.len());
        let code = u32::from_str_radix(digits[..count].trim_start_matches('0'), radix);
        let char = code.ok().and_then(char::from_u32).map(String::from);
        // Browsers and Python need no semicolon.
        let semicolon = usize::from(digits[count..].starts_with(';'));
        return (count > 0).then_some((before + count + semicolon, char));
    }
    let count = inside.find(|char: char| !char.is_alphanumeric())?;
    let is_reference = count > 0 && inside[count..].starts_with(';');
    is_reference.then(|| (count + 2, resolve_html5_entity(&inside[..count]).map(str::to_owned)))
}

/// The text with its character references decoded. Unknown references are kept.
fn with_references(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((length, Some(char))) = reference(rest) {
            decoded.push_str(&char);
            rest = &rest[length..];
        } else {
            decoded.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    decoded
}

fn octet(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// The text with its percent-encoded octets decoded. What is no UTF-8 then is dropped.
fn with_octets(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if let Some(octet) = octet(rest) {
            decoded.push(octet);
            rest = &rest[3..];
        } else {
            decoded.push(*first);
            rest = after;
        }
    }
    decoded.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

/// The text with hexadecimal digits in place of letters that are one with an accent, as WordPress writes them: in German and
/// Danish some are two.
fn without_accents(text: &str, writes_two: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '£' => {}
            'ä' | 'Ä' if writes_two => plain.push_str("ae"),
            'å' | 'Å' if writes_two => plain.push_str("aa"),
            'æ' | 'Æ' => plain.push_str("ae"),
            'ɑ' => plain.push('a'),
            'đ' | 'Đ' => plain.push('d'),
            '€' => plain.push('e'),
            _ => {
                let mut parts = iter::once(char).nfkd();
                let first = parts.next().unwrap_or(char);
                let is_digit = first.is_ascii_hexdigit() && parts.all(is_combining_mark);
                plain.push(if is_digit { first } else { char });
            }
        }
    }
    plain
}

/// Where `strip_tags` of PHP stands in a text.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Text,
    Tag,
    /// `<?`
    Instruction,
    /// `<!`
    Declaration,
    Comment,
}

/// The text as `strip_tags` of PHP leaves it: it knows nested tags and `>` in quotes, and a tag that is not closed ends
/// with the text.
fn without_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut place = Place::Text;
    let mut depth = 0_usize;
    let mut quote = None;
    let chars: Vec<char> = text.chars().collect();
    let behind = |at: usize, back: usize| at.checked_sub(back).map(|at| chars[at]);
    for (at, &char) in chars.iter().enumerate() {
        let is_blank_next = chars.get(at + 1).is_some_and(|next| next.is_ascii_whitespace() || *next == '\u{b}');
        match (place, char) {
            (Place::Text, '<') if !is_blank_next => place = Place::Tag,
            (Place::Text, _) => kept.push(char),
            (_, '<') if quote.is_none() && place == Place::Tag && !is_blank_next => depth += 1,
            (_, '>') if depth > 0 => depth -= 1,
            (_, '>') if quote.is_none() => {
                let ends = match place {
                    Place::Text | Place::Tag | Place::Declaration => true,
                    Place::Instruction => behind(at, 1) == Some('?'),
                    Place::Comment => behind(at, 1) == Some('-') && behind(at, 2) == Some('-'),
                };
                if ends {
                    place = Place::Text;
                }
            }
            (Place::Tag, '!') if behind(at, 1) == Some('<') => place = Place::Declaration,
            (Place::Tag, '?') if behind(at, 1) == Some('<') => place = Place::Instruction,
            (Place::Declaration, '-') if behind(at, 1) == Some('-') && behind(at, 2) == Some('!') => {
                place = Place::Comment;
            }
            (Place::Tag | Place::Declaration, '"' | '\'') => match quote {
                None => quote = Some(char),
                Some(open) if open == char => quote = None,
                Some(_) => {}
            },
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        steps(text, &mut |step| {
            if step != text && !found.contains(&step) {
                found.push(step);
            }
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn tags_are_dropped() {
        check("<b1>alice", &["alice"]);
        check("ali<br/>ce", &["alice"]);
        check("ali<a<b>c>ce", &["alice", "alic>ce"]);
        check("ali<a x='>'>ce", &["alice", "ali'>ce"]);
        check("alice<b", &["alice"]);
        check("alice< b>", &["alice"]);
        check("ali<!-- > -->ce", &["alice", "ali -->ce"]);
        check("ali<? x > ?>ce", &["alice", "ali ?>ce"]);
    }

    #[test]
    fn scripts_go_with_what_they_contain() {
        check("ali<script x>y</script>ce", &["aliyce", "alice"]);
        check("ali<STYLE>y</style>ce", &["aliyce", "alice"]);
        check("ali<script>y", &["aliy"]);
    }

    #[test]
    fn octets_are_dropped_or_decoded() {
        check("ali%01ce", &["alice", "ali\u{1}ce"]);
        check("%61lice", &["lice", "alice"]);
        check("al%c3%ad%ffce", &["alce", "al\u{ed}ce"]);
        check("100%", &[]);
        check("ali%0Ćce", &["ali%0Cce"]);
    }

    #[test]
    fn references_are_dropped_or_decoded() {
        check("ali&x1;ce", &["alice"]);
        check("ali&a b;ce", &["alice"]);
        check("&#x61;lice", &["lice", "alice"]);
        check("&#97lice", &["lice", "alice"]);
        check("&eacute;lice", &["lice", "\u{e9}lice"]);
        check("a&b", &[]);
    }

    #[test]
    fn a_namespace_is_dropped() {
        check("user:alice", &["alice"]);
    }
}
