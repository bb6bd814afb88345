//! The values of `first`, which say of which selector they are, so that no two kinds share a key.

use super::selector::KeyPart;
use super::selector::Selector;

/// A value of one of the selectors of `first`.
pub(super) fn encode(selector: &Selector, value: &str) -> String {
    let kind = selector.to_string();
    format!("{}:{kind}:{value}", kind.len())
}

/// The selector of `first` that a value is of, and the value. `None`: the empty value.
pub(super) fn decode<'c, 'v>(choices: &'c [KeyPart], value: &'v [u8]) -> Option<(&'c KeyPart, &'v [u8])> {
    choices.iter().find_map(|choice| Some((choice, value.strip_prefix(encode(&choice.selector, "").as_bytes())?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Spelling;

    #[test]
    fn a_value_says_of_which_selector_it_is() {
        let part = |text: &str| KeyPart { selector: text.parse().expect("a selector"), spelling: Spelling::Usual };
        let choices = [part("query.a"), part("query.a:b"), part("host")];
        for choice in &choices {
            for value in ["", "x", "b:x", "7:query.a:x"] {
                let encoded = encode(&choice.selector, value);
                assert_eq!(decode(&choices, encoded.as_bytes()), Some((choice, value.as_bytes())));
            }
        }
        assert_eq!(decode(&choices, b""), None);
    }
}
