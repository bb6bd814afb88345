//! The letters and digits of a text, in lower-case ASCII.

use std::iter;

use any_ascii::any_ascii_char;
use smallvec::SmallVec;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::char::decompose_compatible;

use super::collated::collated;
use crate::request::text::is_ignored;

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

/// What stays of a text beside its letters and digits.
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

/// The letters that stand for one in German and its neighbours, other than those with a diaeresis. `DokuWiki` takes some
/// letters and digits for punctuation, of which a name may have any number at its ends.
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

const DIAERESIS: char = '\u{308}';

#[cfg(test)]
mod tests {
    use super::*;

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
}
