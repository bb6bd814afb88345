//! The macro that defines the words that a key allows.

use super::invalid_value::InvalidValue;
use crate::glob::Glob;
use crate::spelling::nearest;

/// Defines an enum of the words that a key allows.
macro_rules! words {
    (
        $(#[doc = $about:literal])+
        $name:ident { $( $word:literal => $variant:ident, )+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $name { $( $variant, )+ }

        impl $crate::config::raw::scalar::ScalarValue for $name {
            const EXPECTED: &'static str = "one word";
            const INSTEAD: &'static str = concat!("write one of"$(, " `", $word, "`")+);

            fn parse(text: &str) -> Result<Self, $crate::config::raw::invalid_value::InvalidValue> {
                match text {
                    $( $word => Ok(Self::$variant), )+
                    _ => Err($crate::config::raw::words::unknown_word(text, &[ $( $word ),+ ])),
                }
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [ $( $word ),+ ] })
            }
        }
    };
}

pub(super) use words;

/// The error for an unknown word.
pub(super) fn unknown_word(text: &str, words: &[&str]) -> InvalidValue {
    let help = match nearest(text, words) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write {}", either(words)),
    };
    if Glob::looks_like_glob(text) {
        return InvalidValue::of_glob(text, "a word", help);
    }
    InvalidValue::with(format!("unknown value `{text}`"), help)
}

/// `a`, `b` or `c`.
fn either(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}
