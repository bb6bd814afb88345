//! All readings of a name.

use std::borrow::Cow;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::address::is_at_gmail;
use super::address::mailbox;
use super::letters::Keep;
use super::letters::Style;
use super::letters::letters;
use super::markup;

/// Which names are one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Fold {
    /// Names of the same letters and digits.
    Letters,
    /// Addresses of one mailbox; what is no address is as letters.
    Email,
}

/// A name with more readings, or longer and with markup, than any honest one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyReadings;

/// What applications may take a name for: once for each of them, whether they drop markup, decode it or keep it, and
/// however they write its letters. `sent` is the value as it came, `usual` the same in its usual spelling. A name without letters and digits is
/// itself alone.
pub fn readings<'v>(
    fold: Fold,
    sent: &str,
    usual: Cow<'v, str>,
) -> Result<SmallVec<[Cow<'v, str>; 1]>, TooManyReadings> {
    if usual.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) && sent.is_ascii() {
        return Ok(smallvec![usual]);
    }
    let mut found: SmallVec<[Cow<'v, str>; 1]> = SmallVec::new();
    each_reading(fold, &usual, &mut found)?;
    if !sent.is_ascii() {
        // Folding case writes some letters as two, and databases do not.
        let sent = beginning(sent);
        each_reading(fold, sent, &mut found)?;
        if sent.chars().any(is_supplementary) {
            // To some collations of MariaDB these are one and the same character.
            let without: String = sent.chars().filter(|char| !is_supplementary(*char)).collect();
            each_reading(fold, &without, &mut found)?;
        }
    }
    if found.is_empty() {
        found.push(usual);
    }
    Ok(found)
}

/// Whether a name that is spelt otherwise than this reading of it certainly belongs to the same person.
pub fn is_one_mailbox(fold: Fold, reading: &str) -> bool {
    fold == Fold::Email && is_at_gmail(reading)
}

fn each_reading(fold: Fold, text: &str, found: &mut SmallVec<[Cow<'_, str>; 1]>) -> Result<(), TooManyReadings> {
    if !markup::may_have_steps(text) {
        each_style(fold, text, found);
        return Ok(());
    }
    if text.len() > MAX_LENGTH_OF_MARKUP {
        return Err(TooManyReadings);
    }
    // Applications drop and decode in any order, and some of them twice.
    let mut texts = vec![text.to_owned()];
    let mut done = 0;
    while let Some(text) = texts.get(done).cloned() {
        markup::steps(&text, &mut |step| {
            // One beyond the bound is enough to refuse.
            if texts.len() <= MAX_TEXTS && !texts.contains(&step) {
                texts.push(step);
            }
        });
        if texts.len() > MAX_TEXTS {
            return Err(TooManyReadings);
        }
        each_style(fold, &text, found);
        done += 1;
    }
    Ok(())
}

fn each_style(fold: Fold, text: &str, found: &mut SmallVec<[Cow<'_, str>; 1]>) {
    for style in Style::of(text) {
        let address = if fold == Fold::Email { mailbox(text.trim(), style) } else { None };
        let reading = address.unwrap_or_else(|| letters(text, style, Keep::Nothing));
        if !reading.is_empty() && !found.iter().any(|known| **known == *reading) {
            found.push(Cow::Owned(reading));
        }
    }
}

fn is_supplementary(char: char) -> bool {
    char.len_utf8() == 4
}

/// As much of a text as its usual spelling has.
fn beginning(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_LENGTH)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// In bytes: as of a text that is normalised.
const MAX_LENGTH: usize = 4096;

/// A name with markup is longer than this in no application.
const MAX_LENGTH_OF_MARKUP: usize = 512;

/// Several kinds of markup, each dropped, decoded and kept, in any order, are fewer.
const MAX_TEXTS: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::text::normalise;

    fn of(fold: Fold, sent: &str) -> Result<Vec<String>, TooManyReadings> {
        let found = readings(fold, sent, normalise(sent))?;
        Ok(found.into_iter().map(Cow::into_owned).collect())
    }

    #[track_caller]
    fn check(fold: Fold, sent: &str, expected: &[&str]) {
        let mut found = of(fold, sent).expect("few readings");
        found.sort();
        assert_eq!(found, expected, "{sent:?}");
    }

    #[test]
    fn a_name_is_its_letters() {
        for sent in ["alice", "Àlicé", "alıce", "a.lice", "!alice", "al ice", "A_LICE", "ａｌｉｃｅ", "alice\u{301}"]
        {
            check(Fold::Letters, sent, &["alice"]);
        }
        check(Fold::Letters, "Jörg", &["joerg", "jorg"]);
        check(Fold::Letters, "Straße", &["strase", "strasse"]);
        check(Fold::Letters, "bob@example.com", &["bobexamplecom"]);
        check(Fold::Letters, "ᾳ", &["a", "ai"]);
        check(Fold::Letters, "\u{363}lice", &["alice", "lice"]);
        check(Fold::Letters, "alice𝒳😀", &["alice", "alicex"]);
    }

    #[test]
    fn markup_is_dropped_and_kept() {
        check(Fold::Letters, "<b1>alice", &["alice", "b1alice"]);
        check(Fold::Letters, "ali&x1;ce", &["alice", "alix1ce"]);
        check(Fold::Letters, "&#x61;lice", &["alice", "lice", "x61lice"]);
        check(Fold::Letters, "ali%01ce", &["ali01ce", "alice"]);
        check(Fold::Letters, "ali%25%30%31ce", &["ali01ce", "ali253031ce", "alice"]);
        check(Fold::Letters, "ali<script>x</script>ce", &["alice", "aliscriptxscriptce", "alixce"]);
        // What composes with a bracket is none for the database, and one for the application.
        check(Fold::Letters, "alice<\u{338}b>", &["alice", "aliceb"]);
        check(Fold::Letters, "alice<\u{a0}b>", &["alice", "aliceb"]);
    }

    #[test]
    fn a_name_without_letters_is_itself() {
        check(Fold::Letters, "!?", &["!?"]);
        check(Fold::Letters, "😀", &["😀"]);
        check(Fold::Letters, "", &[""]);
        check(Fold::Letters, "山田", &["shantian"]);
    }

    #[test]
    fn an_address_is_its_mailbox() {
        check(Fold::Email, "Alice+x@Example.com", &["alice@example.com"]);
        check(Fold::Email, "a.lice@googlemail.com", &["alice@gmail.com"]);
        check(Fold::Email, "a.lice", &["alice"]);
        check(Fold::Email, "alice@example.com<b>", &["alice@example.com", "alice@example.com<b>"]);
    }

    #[test]
    fn what_no_person_types_is_refused() {
        assert_eq!(of(Fold::Letters, &format!("<{}>alice", "b".repeat(600))), Err(TooManyReadings));
        let nested = (0..40).map(|at| format!("%25{at}&#x{at};<{at}>:")).collect::<Vec<_>>().concat();
        assert_eq!(of(Fold::Letters, &nested), Err(TooManyReadings));
    }

    /// Names, and what attackers write into them.
    fn name() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-zA-Z0-9]{1,4}",
            1 => "[ ._!@+'-]",
            1 => "[àéıßöÆøñÑＡ北\u{301}\u{338}\u{200b}\u{a0}😀𝒳]",
            1 => Just("<b1>".to_owned()),
            1 => Just("&x1;".to_owned()),
            1 => Just("&#x61;".to_owned()),
            1 => Just("%41".to_owned()),
            1 => "[<>&;%:#]",
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_reading_is_its_own_only_reading(sent in name(), fold in prop_oneof![Just(Fold::Letters), Just(Fold::Email)]) {
            for reading in of(fold, &sent).unwrap_or_default() {
                if reading.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    prop_assert_eq!(of(fold, &reading), Ok(vec![reading]));
                }
            }
        }

        #[test]
        fn names_that_were_one_stay_one(sent in name(), fold in prop_oneof![Just(Fold::Letters), Just(Fold::Email)]) {
            let usual = normalise(&sent);
            if let (Ok(found), Ok(plain)) = (of(fold, &sent), of(fold, &usual)) {
                prop_assert!(plain.iter().any(|reading| found.contains(reading)), "{plain:?} {found:?}");
            }
        }

        #[test]
        fn no_text_is_dear(sent in ".{0,300}") {
            if let Ok(found) = of(Fold::Letters, &sent) {
                prop_assert!(!found.is_empty() && found.len() <= 9 * MAX_TEXTS);
            }
        }
    }
}
