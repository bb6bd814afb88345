//! Mends values in heads of responses that are no values of HTTP and still can be read in one way only, as applications of
//! old send them.

use std::fmt;

use memchr::memchr;

use crate::wire::http1::grammar::HeadScanner;

/// These fields decide where the message ends and how the connection is used.
const FRAMING: [&[u8]; 5] = [b"connection", b"content-length", b"keep-alive", b"transfer-encoding", b"upgrade"];

/// The repairs of a head.
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

/// The head at the start of `received`, as far as it has arrived, with repaired values. Its length stays.
///
/// Ambiguous text is not repaired, so that the reader refuses it: NUL, a CR without LF, a line of blanks, and anything
/// in the fields that say where a message ends; `None`: such a field would have to be repaired.
pub(super) fn repair_head(received: &[u8]) -> Option<(Vec<u8>, Repairs)> {
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
                return None;
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
                return None;
            }
            *byte = b' ';
            repairs.control = true;
        }
        at = next;
    }
    Some((text, repairs))
}

/// The length of the line with its line end, if that has arrived.
fn line_length(text: &[u8]) -> usize {
    memchr(b'\n', text).map_or(text.len(), |feed| feed + 1)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether it may stand in no value, and ends neither a line nor, in some languages, a text.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0x01..=0x08 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_repair(fields: &str, expected: Option<(&str, bool, bool)>) {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nbody \u{1}");
        let repaired = repair_head(head.as_bytes()).map(|(text, repairs)| (String::from_utf8(text).unwrap(), repairs));
        let expected = expected.map(|(fields, folded, control)| {
            (format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"), Repairs { folded, control })
        });
        assert_eq!(repaired, expected, "{fields:?}");
    }

    #[test]
    fn folded_values_are_one_line_and_control_characters_blanks() {
        check_repair("A: b", Some(("A: b", false, false)));
        check_repair("A: b\r\n c\r\n\td\r\nE: f", Some(("A: b   c  \td\r\nE: f", true, false)));
        check_repair("A: b\n c\nE: f", Some(("A: b  c\nE: f", true, false)));
        check_repair("A: b\u{1}c\u{7f}\r\nE: \u{c}", Some(("A: b c \r\nE:  ", false, true)));
        check_repair("A:\r\n b\u{b}c", Some(("A:   b c", true, true)));
    }

    #[test]
    fn what_can_be_read_in_several_ways_is_left() {
        for field in ["A: b\0c", "A: b\rc", "A\u{1}: b", "A\u{1}", "\u{1}A: b"] {
            check_repair(field, Some((field, false, false)));
        }
        for field in [
            "A: b\r\n \r\nC: d",
            "A: b\r\n\t",
            "Content-Length:\r\n 5",
            "Transfer-Encoding: \u{b}chunked",
            "transfer-encoding : a\r\n chunked",
            "Connection: close\u{1}",
        ] {
            check_repair(field, None);
        }
    }

    #[test]
    fn what_is_folded_onto_the_status_line_is_no_field() {
        let (text, _) = repair_head(b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n").unwrap();
        assert_eq!(text, b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n");
    }
}
