//! Mends values that are no values of HTTP and still can be read in one way only, as applications of old send them.

use std::fmt;

use super::error::InvalidResponse;
use crate::http1::grammar::HeadScanner;

/// What was mended in a head.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Repairs {
    /// A value went on in the next line, which began with a blank. Its line end is blanks now (RFC 9112, section 5.2).
    pub folded: bool,
    /// A value had control characters. Each is a blank now.
    pub control: bool,
}

impl Repairs {
    pub fn is_any(self) -> bool {
        self.folded || self.control
    }
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults =
            [(self.folded, "a field that goes on in the next line"), (self.control, "control characters in a field")];
        let faults = faults.into_iter().filter_map(|(is_there, fault)| is_there.then_some(fault));
        f.write_str(&faults.collect::<Vec<_>>().join(" and "))
    }
}

/// The head at the front of `received` with mended values, as far as it has arrived. It is as long as before.
///
/// What could be read in several ways is left for the reader to refuse: NUL, a CR without LF, a line of blanks, and anything in the
/// fields that say where a message ends.
pub(super) fn mended(received: &[u8]) -> Result<(Vec<u8>, Repairs), InvalidResponse> {
    let end = HeadScanner::default().find_end(received).unwrap_or(received.len());
    let mut text = received[..end].to_vec();
    let mut repairs = Repairs::default();
    // Behind the status line, and the empty lines before it.
    let begun = text.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(end);
    let mut at = begun + line_length(&text[begun..]);
    while at < end {
        let mut next = at + line_length(&text[at..]);
        let name_length = text[at..next].iter().position(|byte| *byte == b':').unwrap_or(next - at);
        let is_framing = FRAMING.iter().any(|name| name.eq_ignore_ascii_case(text[at..at + name_length].trim_ascii()));
        while text.get(next).is_some_and(|first| is_blank(*first)) {
            let continued = next + line_length(&text[next..]);
            let is_blank_line = text[..continued].ends_with(b"\n") && text[next..continued].trim_ascii().is_empty();
            if is_framing || is_blank_line {
                return Err(InvalidResponse::Head);
            }
            text[..next]
                .iter_mut()
                .rev()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                .take(2)
                .for_each(|byte| *byte = b' ');
            repairs.folded = true;
            next = continued;
        }
        for byte in text[at..next].iter_mut().skip(name_length).filter(|byte| is_control(**byte)) {
            if is_framing {
                return Err(InvalidResponse::Head);
            }
            *byte = b' ';
            repairs.control = true;
        }
        at = next;
    }
    Ok((text, repairs))
}

/// With its line end, if that has arrived.
fn line_length(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |feed| feed + 1)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether it may stand in no value, and ends neither a line nor, in some languages, a text.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0x01..=0x08 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f)
}

/// What a server reads of these decides where the message ends and what the connection is for.
const FRAMING: [&[u8]; 5] = [b"connection", b"content-length", b"keep-alive", b"transfer-encoding", b"upgrade"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fields: &str, expected: Result<(&str, bool, bool), InvalidResponse>) {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nbody \u{1}");
        let mended = mended(head.as_bytes()).map(|(text, repairs)| (String::from_utf8(text).unwrap(), repairs));
        let expected = expected.map(|(fields, folded, control)| {
            (format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"), Repairs { folded, control })
        });
        assert_eq!(mended, expected, "{fields:?}");
    }

    #[test]
    fn folded_values_are_one_line_and_control_characters_blanks() {
        check("A: b", Ok(("A: b", false, false)));
        check("A: b\r\n c\r\n\td\r\nE: f", Ok(("A: b   c  \td\r\nE: f", true, false)));
        check("A: b\n c\nE: f", Ok(("A: b  c\nE: f", true, false)));
        check("A: b\u{1}c\u{7f}\r\nE: \u{c}", Ok(("A: b c \r\nE:  ", false, true)));
        check("A:\r\n b\u{b}c", Ok(("A:   b c", true, true)));
    }

    #[test]
    fn what_can_be_read_in_several_ways_is_left() {
        for field in ["A: b\0c", "A: b\rc", "A\u{1}: b", "A\u{1}", "\u{1}A: b"] {
            check(field, Ok((field, false, false)));
        }
        for field in [
            "A: b\r\n \r\nC: d",
            "A: b\r\n\t",
            "Content-Length:\r\n 5",
            "Transfer-Encoding: \u{b}chunked",
            "transfer-encoding : a\r\n chunked",
            "Connection: close\u{1}",
        ] {
            check(field, Err(InvalidResponse::Head));
        }
    }

    #[test]
    fn what_is_folded_onto_the_status_line_is_no_field() {
        let (text, _) = mended(b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n").unwrap();
        assert_eq!(text, b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n");
    }
}
