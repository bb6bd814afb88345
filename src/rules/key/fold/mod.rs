//! Readings of a name: what applications and databases may take it for.
//!
//! - `letters`: the letters and digits of a text, in ASCII.
//! - `collated`: letters that databases take for others.
//! - `address`: mail addresses that reach one mailbox.
//! - `markup`: tags, character references and percent-encoded octets, which an application may drop, decode or keep.
//! - `readings`: all of it together.

mod collated;
mod markup;

use std::borrow::Cow;
use std::iter;

use any_ascii::any_ascii_char;
use smallvec::{SmallVec, smallvec};
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

use crate::rules::key::fold::collated::collated;
use crate::rules::request::text::is_ignored;
use crate::words::word::words;

/// In bytes: as of a text that is normalised.
const MAX_LENGTH: usize = 4096;

/// A name with markup is longer than this in no application.
const MAX_LENGTH_OF_MARKUP: usize = 512;

/// Several kinds of markup, each dropped, decoded and kept, in any order, are fewer.
const MAX_TEXTS: usize = 64;

words! {
    /// Which spellings of a name are the same name.
    pub enum Fold {
        /// Names of the same letters and digits.
        Letters = "letters",
        /// Addresses of one mailbox are one name; a name that is no address is compared by its letters.
        Email = "email",
    }
}

/// A name with more readings, or longer and with markup, than any honest one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyReadings;

/// All names that applications may read from a value: whether they drop markup, decode it or keep it, and with each
/// spelling of its letters. `sent` is the value as it came, `usual` its usual spelling. A name without letters and
/// digits has one reading: itself.
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

// The letters and digits of a text, in lower-case ASCII.

const DIAERESIS: char = '\u{308}';

/// How letters are written that have no one spelling in ASCII.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// `ß` is `ss` and `ö` is `o`: collations of Unicode.
    Usual,
    /// `ß` is `s` and `æ` is `a`: collations that compare one letter with one letter.
    Single,
    /// `ö` is `oe`: `DokuWiki`.
    German,
    /// `ö` is `oe` and `ø` too: WordPress in German and Danish, whose database then compares what is left.
    Translated,
    /// Letters as databases compare them that no transliteration knows.
    Collated,
}

/// Which characters of a text stay, beside its letters and digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keep {
    Nothing,
    /// Punctuation of ASCII.
    Punctuation,
}

impl Style {
    /// The styles that may differ for this text. The first is `Usual`.
    pub(super) fn of(text: &str) -> SmallVec<[Self; 1]> {
        let (mut single, mut german, mut translated, mut strange) = (false, false, false, false);
        for char in text.chars().filter(|char| !char.is_ascii()) {
            single |= single_letter(char).is_some();
            german |= german_letters(char).is_some();
            translated |= translated_letters(char).is_some();
            strange |= collated(char).is_some();
            decompose_compatible(char, |part| german |= part == DIAERESIS);
        }
        // Where letters are only written as in German, both are alike.
        translated |= german && (single || strange);
        let others =
            [(single, Self::Single), (german, Self::German), (translated, Self::Translated), (strange, Self::Collated)];
        let differing = others.into_iter().filter(|(differs, _)| *differs).map(|(_, style)| style);
        iter::once(Self::Usual).chain(differing).collect()
    }
}

/// The letters and digits of a text, transliterated. A letter that has no transliteration stays as it is.
pub(super) fn letters(text: &str, style: Style, keep: Keep) -> String {
    let mut ascii = String::with_capacity(text.len());
    // The letter to which marks that follow belong.
    let mut marked = None;
    let writes_diaeresis = matches!(style, Style::German | Style::Translated);
    for char in text.chars() {
        let special = match style {
            Style::Usual => None,
            Style::Single => single_letter(char).or_else(|| collated(char)),
            Style::German => german_letters(char),
            Style::Translated => translated_letters(char).or_else(|| collated(char)),
            Style::Collated => collated(char),
        };
        if let Some(special) = special {
            ascii.push_str(special);
            marked = None;
            continue;
        }
        decompose_compatible(char, |part| {
            if canonical_combining_class(part) != 0 {
                if writes_diaeresis && part == DIAERESIS && matches!(marked, Some('a' | 'o' | 'u')) {
                    ascii.push('e');
                }
                marked = None;
                return;
            }
            marked = Some(part.to_ascii_lowercase());
            push_letter(&mut ascii, part, keep);
        });
    }
    ascii
}

fn push_letter(ascii: &mut String, char: char, keep: Keep) {
    if char.is_ascii() {
        if char.is_ascii_alphanumeric() || keep == Keep::Punctuation && char.is_ascii_punctuation() {
            ascii.push(char.to_ascii_lowercase());
        }
        return;
    }
    if !char.is_alphanumeric() || is_ignored(char) {
        return;
    }
    let written = any_ascii_char(char);
    if written.is_empty() {
        ascii.extend(char.to_lowercase());
    }
    ascii.extend(written.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()));
}

/// The one letter that stands for a ligature, and for what WordPress writes as one.
fn single_letter(char: char) -> Option<&'static str> {
    Some(match char {
        'ß' | 'ẞ' => "s",
        'æ' | 'Æ' => "a",
        'œ' | 'Œ' => "o",
        'þ' | 'Þ' => "t",
        'ŋ' | 'Ŋ' => "n",
        'ĸ' => "k",
        '€' => "e",
        _ => return None,
    })
}

/// The replacement for a letter of German and its neighbours, except letters with a diaeresis. `DokuWiki` takes some
/// letters and digits for punctuation, and ignores punctuation at the ends of a name.
fn german_letters(char: char) -> Option<&'static str> {
    Some(match char {
        'ð' | 'Ð' => "dh",
        'µ' => "u",
        'ª'
        | '²'
        | '³'
        | '¹'
        | 'º'
        | '¼'..='¾'
        | '№'
        | '™'
        | '⑩'
        | '❿'
        | '➉'
        | '➓'
        | '슠'
        | '\u{1d6fc}'..='\u{1d714}'
        | '\u{1d716}'..='\u{1d71b}' => "",
        _ => return None,
    })
}

/// The letters that WordPress writes otherwise in some languages.
fn translated_letters(char: char) -> Option<&'static str> {
    Some(match char {
        'å' | 'Å' | '\u{212b}' => "aa",
        'ø' | 'Ø' => "oe",
        'ŋ' | 'Ŋ' => "n",
        'ĸ' => "k",
        '€' => "e",
        _ => return None,
    })
}

// Mail addresses that reach one mailbox.

/// Two names of one domain.
const GMAIL: [&str; 2] = ["gmail.com", "googlemail.com"];

/// The address of the mailbox, in ASCII: without what stands behind `+`, and at Gmail without dots. `None`: the text is no
/// address.
pub(super) fn mailbox(text: &str, style: Style) -> Option<String> {
    let (local, domain) = text.split_once('@')?;
    if domain.contains('@') || text.chars().any(char::is_whitespace) {
        return None;
    }
    let domain = letters(domain, style, Keep::Punctuation);
    let domain = domain.trim_end_matches('.');
    let local = letters(local, style, Keep::Punctuation);
    let local = local.split('+').next().unwrap_or_default();
    let (local, domain) =
        if GMAIL.contains(&domain) { (local.replace('.', ""), GMAIL[0]) } else { (local.to_owned(), domain) };
    let is_empty = |text: &str| !text.chars().any(char::is_alphanumeric);
    (!is_empty(&local) && !is_empty(domain)).then(|| format!("{local}@{domain}"))
}

/// Whether an address is at Gmail, where dots do not distinguish accounts.
pub(super) fn is_at_gmail(mailbox: &str) -> bool {
    mailbox.split_once('@').is_some_and(|(_, domain)| GMAIL.contains(&domain))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::request::text::normalise;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let styles = Style::of(text);
        let found: Vec<_> = styles.iter().map(|style| letters(text, *style, Keep::Nothing)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn letters_and_digits_are_written_in_ascii() {
        check("Àlicé", &["alice"]);
        check("alıce", &["alice"]);
        check("İlayda", &["ilayda"]);
        check("a.li-ce_ !\t", &["alice"]);
        check("ＡＬＩＣＥ１", &["alice1"]);
        check("𝒶𝓁𝒾𝒸𝑒", &["alice"]);
        check("łđħ", &["ldh"]);
        check("٣३", &["33"]);
        check("Иван", &["ivan"]);
        check("e\u{301}\u{327}\u{200b}x", &["ex"]);
        check("北京", &["beijing"]);
        check("", &[""]);
        check("😀!", &[""]);
    }

    #[test]
    fn a_letter_of_several_spellings_has_each() {
        check("Straße", &["strasse", "strase"]);
        check("Jörg", &["jorg", "joerg"]);
        check("Jo\u{308}rg", &["jorg", "joerg"]);
        check("Ærø", &["aero", "aro", "aeroe"]);
        check("Öæ", &["oae", "oa", "oeae", "oeae"]);
        check("ë", &["e", "e"]);
        check("²alice²", &["2alice2", "alice"]);
        check("søreŋ", &["soreng", "soren", "soeren"]);
        check("\u{363}lice", &["lice", "alice"]);
    }

    #[test]
    fn a_letter_without_a_transliteration_stays() {
        let unknown = (0x1_0000..0x3_0000u32).filter_map(char::from_u32);
        for char in unknown.filter(|char| char.is_alphanumeric()) {
            let _ = letters(&char.to_string(), Style::Usual, Keep::Nothing);
        }
        check("\u{30000}", &["\u{30000}"]);
    }

    #[track_caller]
    fn check_address(text: &str, expected: Option<&str>) {
        assert_eq!(mailbox(text, Style::Usual).as_deref(), expected, "{text}");
    }

    #[test]
    fn an_address_is_that_of_its_mailbox() {
        check_address("alice@example.com", Some("alice@example.com"));
        check_address("alice+shop@example.com", Some("alice@example.com"));
        check_address("a.l.ice@example.com", Some("a.l.ice@example.com"));
        check_address("a.l.ice+x+y@gmail.com", Some("alice@gmail.com"));
        check_address("a.lice@googlemail.com.", Some("alice@gmail.com"));
        check_address("Àlice@Example.com", Some("alice@example.com"));
        check_address("root@localhost", Some("root@localhost"));
    }

    #[test]
    fn what_is_no_address_says_so() {
        for text in
            ["alice", "@example.com", "alice@", "a@b@c", "al ice@example.com", "+x@example.com", "...@gmail.com"]
        {
            check_address(text, None);
        }
    }

    fn of(fold: Fold, sent: &str) -> Result<Vec<String>, TooManyReadings> {
        let found = readings(fold, sent, normalise(sent))?;
        Ok(found.into_iter().map(Cow::into_owned).collect())
    }

    #[track_caller]
    fn check_fold(fold: Fold, sent: &str, expected: &[&str]) {
        let mut found = of(fold, sent).expect("few readings");
        found.sort();
        assert_eq!(found, expected, "{sent:?}");
    }

    #[test]
    fn a_name_is_its_letters() {
        for sent in ["alice", "Àlicé", "alıce", "a.lice", "!alice", "al ice", "A_LICE", "ａｌｉｃｅ", "alice\u{301}"]
        {
            check_fold(Fold::Letters, sent, &["alice"]);
        }
        check_fold(Fold::Letters, "Jörg", &["joerg", "jorg"]);
        check_fold(Fold::Letters, "Straße", &["strase", "strasse"]);
        check_fold(Fold::Letters, "bob@example.com", &["bobexamplecom"]);
        check_fold(Fold::Letters, "ᾳ", &["a", "ai"]);
        check_fold(Fold::Letters, "\u{363}lice", &["alice", "lice"]);
        check_fold(Fold::Letters, "alice𝒳😀", &["alice", "alicex"]);
    }

    #[test]
    fn markup_is_dropped_and_kept() {
        check_fold(Fold::Letters, "<b1>alice", &["alice", "b1alice"]);
        check_fold(Fold::Letters, "ali&x1;ce", &["alice", "alix1ce"]);
        check_fold(Fold::Letters, "&#x61;lice", &["alice", "lice", "x61lice"]);
        check_fold(Fold::Letters, "ali%01ce", &["ali01ce", "alice"]);
        check_fold(Fold::Letters, "ali%25%30%31ce", &["ali01ce", "ali253031ce", "alice"]);
        check_fold(Fold::Letters, "ali<script>x</script>ce", &["alice", "aliscriptxscriptce", "alixce"]);
        // What composes with a bracket is none for the database, and one for the application.
        check_fold(Fold::Letters, "alice<\u{338}b>", &["alice", "aliceb"]);
        check_fold(Fold::Letters, "alice<\u{a0}b>", &["alice", "aliceb"]);
    }

    #[test]
    fn a_name_without_letters_is_itself() {
        check_fold(Fold::Letters, "!?", &["!?"]);
        check_fold(Fold::Letters, "😀", &["😀"]);
        check_fold(Fold::Letters, "", &[""]);
        check_fold(Fold::Letters, "山田", &["shantian"]);
    }

    #[test]
    fn an_address_is_its_mailbox() {
        check_fold(Fold::Email, "Alice+x@Example.com", &["alice@example.com"]);
        check_fold(Fold::Email, "a.lice@googlemail.com", &["alice@gmail.com"]);
        check_fold(Fold::Email, "a.lice", &["alice"]);
        check_fold(Fold::Email, "alice@example.com<b>", &["alice@example.com", "alice@example.com<b>"]);
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
