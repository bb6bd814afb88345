//! A question of one gateway to all.

use std::fmt::Write;

/// Asks every gateway to write what has changed, and the story of one request if it knows it.
///
/// As a message it is `ask NUMBER` or `ask NUMBER =ID`; the number is 16 hexadecimal digits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store) struct Question {
    /// A random number, by which answers are told apart.
    pub(in crate::store) number: u64,
    /// The id of a request.
    pub(in crate::store) id: Option<Box<str>>,
}

impl Question {
    /// `id` is left out where it is none that a gateway gives or takes.
    pub(super) fn new(id: Option<&str>) -> Self {
        Self { number: fastrand::u64(..), id: id.filter(|id| is_id(id)).map(Into::into) }
    }

    /// Whether a message of the channel is a question, perhaps a malformed one.
    pub(in crate::store) fn is_in(message: &[u8]) -> bool {
        message.starts_with(b"ask ")
    }

    /// `None`: it is malformed.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?.strip_prefix("ask ")?;
        let (number, id) = match text.split_once(' ') {
            None => (text, None),
            Some((number, id)) => (number, Some(id.strip_prefix('=').filter(|id| is_id(id))?)),
        };
        let are_digits = number.len() == DIGITS && number.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u64::from_str_radix(number, 16).ok().filter(|_| are_digits)?;
        Some(Self { number, id: id.map(Into::into) })
    }

    pub(super) fn to_message(&self) -> String {
        let mut message = format!("ask {:0DIGITS$x}", self.number);
        if let Some(id) = &self.id {
            // With the sign it is no key to a gateway of an earlier version, which resets keys that it finds in messages.
            let _ = write!(message, " ={id}");
        }
        message
    }
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// No id of a request is longer, in bytes.
pub const MAX_ID: usize = 64;

const DIGITS: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_asked_and_anything_else_is_ignored() {
        for id in [None, Some("7f3a"), Some(&*"x".repeat(MAX_ID))] {
            let question = Question::new(id);
            assert_eq!(question.id.as_deref(), id);
            assert_eq!(Question::read(question.to_message().as_bytes()), Some(question));
        }
        for id in ["", "a b", "a\n", "é", &"x".repeat(MAX_ID + 1)] {
            assert_eq!(Question::new(Some(id)).id, None, "{id}");
        }
        let number = "00000000000000ff";
        for wrong in [
            "ask ".to_owned(),
            "ask 7".to_owned(),
            "ask +0000000000000ff".to_owned(),
            format!("ask {number} "),
            format!("ask {number} ="),
            format!("ask {number} id"),
            format!("ask {number} =a =b"),
            format!("ask {number} ={}", "x".repeat(MAX_ID + 1)),
            format!("asks {number}"),
        ] {
            assert_eq!(Question::read(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Question::read(b"ask \xff"), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_bounded_and_written_the_same(message in "ask [0-9a-f]{14,17}( ?=?[ -~]{0,70})?") {
            if let Some(question) = Question::read(message.as_bytes()) {
                prop_assert!(question.id.as_ref().is_none_or(|id| id.len() <= MAX_ID));
                prop_assert_eq!(question.to_message(), message);
            }
        }
    }
}
